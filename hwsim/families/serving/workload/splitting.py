"""`parallel:` how a served model is laid over its GPUs; `split:` prompts are read on some, answers written on others.

Servers with disaggregated prefill do the latter:

split:
  prefill: {device: gpu0..1, parallel: {tp: 1}}
  decode: {device: gpu2..7, parallel: {tp: 2}}
"""

from __future__ import annotations

from typing import Literal

from hwsim.families.serving.workload.scaling import ScaleKeys
from hwsim.models.server import ServerKeys
from hwsim.records import dataclass
from hwsim.spec import Place, field, place_field


@dataclass(frozen=True, slots=True)
class SplitKeys:
    """Parallel plan of the model on the devices."""

    tp: int = field("GPUs that split every matrix (tensor parallel)", default=1, minimum=1)
    groups: int = field(
        "of `tp` GPUs, each with sequences of its own; all of a copy share the experts (data-parallel attention)", default=1,
        minimum=1,
    )  # fmt: skip
    ep: int = field("GPUs that experts are spread over; what is left of a copy's splits each expert", default=1, minimum=1)
    pp: int = field("stages of a pipeline, each of `tp` x `groups` GPUs; as many batches are under way at once", default=1,
                    minimum=1)  # fmt: skip
    dp: int | Literal["rest"] = field(
        "copies of the model, each with a queue of its own; rest: all GPUs that are left", default="rest"
    )
    place: Place = place_field()

    @property
    def gpus(self) -> int:
        """GPUs of a copy."""
        return self.tp * self.groups * self.pp


@dataclass(frozen=True, slots=True)
class PartKeys:
    """GPUs of one part of the work."""

    device: tuple[str, ...] = field("its GPUs", one_or_many=True, example="gpu0..1")
    parallel: SplitKeys = field("how the model is laid over them", default=SplitKeys(), example="{tp: 2, dp: rest}")
    server: ServerKeys = field(
        "what its server has otherwise than `server:` says", default=ServerKeys(), example="{sequences: 16}"
    )
    scale: ScaleKeys | None = field(
        "its copies are started and stopped by its load", default=None, example="{least: 1, target: 8, start: 90 s}"
    )
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class ApartKeys:
    """The GPUs that read prompts and those that write answers; keys and values of a prompt pass over the machine's links."""

    prefill: PartKeys = field("reads prompts", example="{device: gpu0..1}")
    decode: PartKeys = field("writes answers", example="{device: gpu2..7}")
    place: Place = place_field()
