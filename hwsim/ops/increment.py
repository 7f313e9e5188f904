"""Counters that cores of a CPU increment: side by side in lines of their own, or one after another in one line.

    increment: {device: cpu, times: 1e6, cores: 4, line: shared}

Runs on the queue `compute` of its device. `line: shared` is the same counter, or counters that lie in one cache line
by accident (false sharing): the line goes from core to core for every increment. `line: own` is the cure: a line each.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from hwsim.devices import Gpu
from hwsim.ops.op import CannotPlace, DeviceOp, Placed, Scope
from hwsim.records import dataclass
from hwsim.spec import field


@dataclass(frozen=True, slots=True, kw_only=True)
class Increment(DeviceOp):
    """`times` increments by each of `cores` cores."""

    kind: ClassVar[str] = "increment"

    times: float = field("increments of each core", minimum=0, example="1e6")
    cores: int | None = field("cores that increment (default: all of them)", default=None, minimum=1)
    line: Literal["own", "shared"] = field("a cache line for each core's counter, or one for all", default="shared")
    atomic: bool = field("read-modify-write instructions (false: plain loads and stores)", default=True)

    def lower(self, scope: Scope) -> Placed:
        device, model = scope.computing(self.device)
        if isinstance(model, Gpu):
            raise CannotPlace(f"'{device}' is a gpu: increments are modelled on a cpu only", "name a cpu as `device`")
        cost = model.increment(device, self.times, self.cores, shared=self.line == "shared", atomic=self.atomic)
        return Placed(device, self.queue or "compute", cost)
