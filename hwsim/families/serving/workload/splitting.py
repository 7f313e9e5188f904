"""`split:` prompts are read on some GPUs and answers written on others, as servers with disaggregated prefill do.

split:
  prefill: {device: gpu0..1, parallel: {tp: 1}}
  decode: {device: gpu2..7, parallel: {tp: 2}}
"""

from __future__ import annotations

from hwsim.families.serving.workload.parallel import SplitKeys
from hwsim.families.serving.workload.scaling import ScaleKeys
from hwsim.models.server import ServerKeys
from hwsim.records import dataclass
from hwsim.spec import Place, field, place_field


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
