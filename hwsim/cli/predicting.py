"""Options of `hwsim import` for a recorded run on another machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.importers.answers import Answer
    from hwsim.importers.recording import Recording
    from hwsim.importers.replay import Replay

OPTIONS: Final = (
    click.option("--machine", metavar="MACHINE", help="Predict the durations of operators from their shapes on this machine."),
    click.option("--keep", type=click.Choice(["host"]), help="host: host threads as recorded, also of a run without a GPU."),
    click.option(
        "--ranks", type=click.IntRange(min=1), metavar="N", help="GPUs in all, the new ones data parallel; on --machine."
    ),
    click.option(
        "--tensor", type=click.IntRange(min=2), metavar="T", help="Divide the products of each rank among T GPUs; on --machine."
    ),
    click.option("--model", metavar="MODEL", help="For a recording without shapes: the network that was run, a model/1."),
    click.option("--batch", type=click.IntRange(min=1), metavar="N", help="Examples of a step of --model."),
)


def with_model(recording: Recording, model: str | None, batch: int | None) -> Recording:
    """The recording with the shapes of --model, if it is given."""
    if model is None:
        return recording
    if batch is None:
        raise click.BadParameter("the shapes of a model need the examples of a step", param_hint="--batch")
    from hwsim.importers.shaping import OtherModel, shaped
    from hwsim.models.library import load_network

    try:
        return shaped(recording, load_network(model, Path.cwd()), batch)[0]
    except OtherModel as error:
        raise click.BadParameter(str(error), param_hint="--model") from None


@dataclass(frozen=True, slots=True)
class There:
    """A replay on another machine, and what is said of it."""

    replay: Replay
    answer: Answer

    def text(self) -> list[str]:
        """Lines to print."""
        from hwsim.importers.answers import text

        return text(self.answer)

    def as_dict(self) -> dict[str, Any]:
        """The part of the document."""
        from hwsim.importers.answers import as_dict

        return as_dict(self.answer)


def predicted(
    replay: Replay, *, machine: str | None, keep: str | None, ranks: int | None, tensor: int | None, **_: object
) -> There | None:
    """The replay on --machine; None without one."""
    if machine is None:
        for option, given in (("--keep", keep), ("--ranks", ranks), ("--tensor", tensor)):
            if given is not None:
                raise click.BadParameter("durations of a machine are needed: add --machine", param_hint=option)
        return None
    from hwsim.importers.answers import answer
    from hwsim.importers.placing import WrongMachine
    from hwsim.importers.predicting import predict
    from hwsim.importers.scaling import CannotScale, scaled
    from hwsim.importers.tensor import split
    from hwsim.importers.untimed import on_gpus
    from hwsim.prepare import load_machine

    assumed: tuple[str, ...] = ()
    divided, option = None, "--ranks"
    replay = on_gpus(replay)
    try:
        if ranks is not None:
            if ranks % (tensor or 1):
                raise CannotScale(f"{ranks} ranks are no whole number of groups of {tensor}")
            more = scaled(replay, ranks // (tensor or 1))
            replay, assumed = more.replay, more.assumed
        if tensor is not None:
            option = "--tensor"
            divided = split(replay, tensor)
            replay, assumed = divided.replay, (*assumed, *divided.assumed)
    except CannotScale as error:
        raise click.BadParameter(str(error), param_hint=option) from None
    try:
        prediction = predict(replay, load_machine(machine), keep_host=keep == "host", divided=divided)
    except WrongMachine as error:
        raise click.BadParameter(str(error), param_hint="--machine") from None
    prediction = replace(prediction, assumed=(*assumed, *prediction.assumed))
    return There(replace(replay, graph=prediction.graph), answer(prediction))
