"""Counters that CPU cores increment: each in a cache line of its own, or all in one cache line (false sharing).

    increment: {device: cpu, times: 1e6, cores: 4, line: shared}

The op runs on the queue `compute` of its device. With `line: shared`, the cores increment one counter, or several counters in the
same cache line (false sharing): the line moves between cores for every increment. With `line: own`, each counter has its own
line.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from hwsim.devices import Gpu
from hwsim.ops.op import CannotPlace, DeviceOp, LoweredOp, Scope
from hwsim.records import dataclass
from hwsim.spec import field


@dataclass(frozen=True, slots=True, kw_only=True)
class Increment(DeviceOp):
    """An op in which each of `cores` cores makes `times` increments."""

    kind: ClassVar[str] = "increment"

    times: float = field("number of increments per core", minimum=0, example="1e6")
    cores: int | None = field("number of cores (default: all cores)", default=None, minimum=1)
    line: Literal["own", "shared"] = field("cache line of the counters: one per core, or one for all", default="shared")
    atomic: bool = field("whether increments are atomic instructions; false: plain loads and stores", default=True)

    def lower(self, scope: Scope) -> LoweredOp:
        device, model = scope.computing(self.device)
        if isinstance(model, Gpu):
            raise CannotPlace(f"'{device}' is a gpu: `increment` requires a cpu", "name a cpu as `device`")
        cost = model.increment(device, self.times, self.cores, shared=self.line == "shared", atomic=self.atomic)
        return LoweredOp(device, self.queue or "compute", cost)
