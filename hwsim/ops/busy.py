"""A device busy for a known time: a measured kernel, a decode step, a sleep.

    busy: {name: decode, device: cpu, time: 6 ms, times: 64, workers: 8}

The op runs on the queue `compute` of its device. It uses one core of a CPU, or all compute units of a GPU. On any other device,
or with `fixed`, it uses no resource. Its duration without contention is times x time; with `workers`, each on a core of its own,
ceil(times / workers) x time. If there are more workers than cores, they share the cores.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

from hwsim.demand import Cost, Term
from hwsim.devices import WORKLOAD, Cpu, Gpu, Sockets
from hwsim.formats import precise
from hwsim.ops.op import CannotPlace, DeviceOp, LoweredOp, Scope
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyOp(DeviceOp):
    """An op that occupies one device for `times` x `time`."""

    kind: ClassVar[str] = "busy"

    time: Seconds = field("duration of one execution without contention", example="30 us")
    times: int = field("number of consecutive executions", default=1, minimum=0)
    workers: int = field("number of CPU threads that share the executions, each on a core of its own", default=1, minimum=1)
    fixed: bool = field("whether the duration is fixed (for example recorded): the op uses no resource", default=False)

    def lower(self, scope: Scope) -> LoweredOp:
        seconds = self.time * self.times
        device = scope.one(self.device) if self.device else scope.own or scope.computing("")[0]
        model = scope.machine.device(device).model
        if self.fixed:
            return LoweredOp(device, self.queue or "compute", None, time=seconds)
        if self.workers > 1:
            if not isinstance(model, Cpu | Sockets):
                raise CannotPlace(f"'{device}' is a {scope.kind(device)}: `workers` requires a cpu")
            cost = self._side_by_side(model, model.busy(device, seconds)) if seconds else None
            return LoweredOp(device, self.queue or "compute", cost)
        if isinstance(model, Cpu | Sockets | Gpu):
            return LoweredOp(device, self.queue or "compute", model.busy(device, seconds) if seconds else None)
        return LoweredOp(device, self.queue or "compute", None, time=seconds)

    def _side_by_side(self, model: Cpu | Sockets, alone: Cost) -> Cost:
        """Return the cost `alone` with its core time divided among parallel workers."""
        rounds = math.ceil(self.times / self.workers)
        inputs = (
            ("times", str(self.times), WORKLOAD),
            ("workers", str(self.workers), WORKLOAD),
            ("time", precise(self.time, "s"), WORKLOAD),
        )
        term = Term("time", "ceil(times / workers) x time", inputs, rounds * self.time, kind="stated")
        shared = self.times * self.time / model.cores
        cores = (inputs[0], inputs[2], ("cores", str(model.cores), "all cores of the cpu"))
        drawn = Term("cores", "times x time / cores", cores, shared, alone.demand.amounts[0][0])
        return replace(alone, demand=replace(alone.demand, floor=rounds * self.time), why=(term, drawn))
