"""`parallel:` the parallel plan of a served model; `split:` disaggregated serving, with separate GPUs for prefill and decode.

split:
  prefill: {device: gpu0..1, parallel: {tp: 1}}
  decode: {device: gpu2..7, parallel: {tp: 2}}
"""

from __future__ import annotations

from typing import Literal

from hwsim.families.serving.workload.autoscaler import ScaleKeys
from hwsim.models.server import ServerKeys
from hwsim.records import dataclass
from hwsim.spec import Place, field, place_field


@dataclass(frozen=True, slots=True)
class SplitKeys:
    """Parallel plan of a served model over its GPUs."""

    tp: int = field("tensor parallelism: number of GPUs that share every matrix", default=1, minimum=1)
    groups: int = field(
        "data-parallel attention: number of groups of `tp` GPUs in a replica; each group has its own sequences, and all groups"
        " share the experts", default=1, minimum=1,
    )  # fmt: skip
    ep: int = field("expert parallelism: number of GPUs that share the experts; `tp` x `groups` / `ep` GPUs split each expert",
                    default=1, minimum=1)  # fmt: skip
    pp: int = field("pipeline parallelism: number of stages, each of `tp` x `groups` GPUs, and of batches in flight", default=1,
                    minimum=1)  # fmt: skip
    dp: int | Literal["rest"] = field(
        "number of replicas, each with its own queue; rest: as many as fit on the GPUs", default="rest"
    )
    place: Place = place_field()

    @property
    def gpus(self) -> int:
        """Number of GPUs of a replica."""
        return self.tp * self.groups * self.pp


@dataclass(frozen=True, slots=True)
class PartKeys:
    """GPUs and settings of prefill, or of decode."""

    device: tuple[str, ...] = field("GPUs of this part", one_or_many=True, example="gpu0..1")
    parallel: SplitKeys = field("parallel plan of the model over these GPUs", default=SplitKeys(), example="{tp: 2, dp: rest}")
    server: ServerKeys = field(
        "settings of the server of this part that differ from `server:`", default=ServerKeys(), example="{sequences: 16}"
    )
    scale: ScaleKeys | None = field(
        "autoscaling of the replicas of this part by its load", default=None, example="{least: 1, target: 8, start: 90 s}"
    )
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class ApartKeys:
    """Disaggregated serving: GPUs for prefill and for decode. The KV cache of a prompt passes over the machine's links."""

    prefill: PartKeys = field("GPUs for prefill", example="{device: gpu0..1}")
    decode: PartKeys = field("GPUs for decode", example="{device: gpu2..7}")
    place: Place = place_field()
