"""Options of `hwsim import` for a recorded run on another machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from hwsim.functions.imported import There
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


def predicted(replay: Replay, **options: Any) -> There | None:
    """The replay on --machine; None without one."""
    from hwsim.functions.estimating import Misused
    from hwsim.functions.imported import elsewhere

    try:
        return elsewhere(replay, **options)
    except Misused as error:
        raise click.BadParameter(error.message, param_hint=f"--{error.option}") from None
