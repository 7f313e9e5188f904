"""Stations of several capacities, where a piece of work draws from one or more; shared as the engine shares them."""

from __future__ import annotations

from collections.abc import Sequence

from hwsim.engine.fluid import FlowClass, Fluid
from hwsim.families.services.actors.stations import NEVER, Member


class Network:
    """Several capacities that one piece of work may draw from at once; shared as the engine shares them."""

    def __init__(self, flows: Sequence[FlowClass], capacities: int) -> None:
        self._fluid = Fluid(flows, capacities)
        self._members: dict[int, Member] = {}
        self._joined = self._last = 0
        self.area = self.busy = 0
        self.due = NEVER

    def join(self, flow: int, time: int, member: Member, instant: int) -> None:
        """A member comes that alone would take `time` fs."""
        self.count(instant)
        self._joined += 1
        self._members[self._joined] = member
        self._fluid.join(flow, self._joined, time, instant)
        self._settle(instant)

    def leave(self, now: int) -> list[Member]:
        """Members that end now."""
        self.count(now)
        ended = [op for number, due in enumerate(self._fluid.due) if due == now for op in self._fluid.leave(number, now)]
        self._settle(now)
        return [self._members.pop(op) for op in sorted(ended)]

    def count(self, now: int) -> int:
        """Members there; time is counted up to now."""
        self.area += len(self._members) * (now - self._last)
        self._last = now
        return len(self._members)

    def used(self, end: int) -> float:  # noqa: ARG002
        """Not known of several at once."""
        return 0.0

    def _settle(self, now: int) -> None:
        fluid = self._fluid
        fluid.settle(now)
        for history in fluid.history:
            history[:-1] = []  # nothing is kept of what is over
        self.due = min((due for due in fluid.due if due >= 0), default=NEVER)
