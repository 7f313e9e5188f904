"""A device busy for a known time: a measured kernel, a decode step, a sleep.

    busy: {name: decode, device: cpu, time: 6 ms, times: 64}

Runs on the queue `compute` of its device.  A CPU gives it one core, a GPU all its compute units;
on any other device it only takes time.  `times` one after another is one op of times x time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hwsim.devices import Cpu, Gpu, Sockets
from hwsim.ops.op import DeviceOp, Placed, Scope
from hwsim.spec import field
from hwsim.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy(DeviceOp):
    """`times` x `time` on one device."""

    kind: ClassVar[str] = "busy"

    time: Seconds = field("how long it takes alone", example="30 us")
    times: int = field("how often, one after another", default=1, minimum=0)

    def lower(self, scope: Scope) -> Placed:
        seconds = self.time * self.times
        device = scope.one(self.device) if self.device else scope.own or scope.computing("")[0]
        model = scope.machine.device(device).model
        if isinstance(model, Cpu | Sockets | Gpu):
            return Placed(device, self.queue or "compute", model.busy(device, seconds) if seconds else None)
        return Placed(device, self.queue or "compute", None, time=seconds)
