"""Stations whose members share one or several capacities max-min fair, like ops in the engine."""

from __future__ import annotations

from collections.abc import Sequence

from hwsim.engine.fair import FULL
from hwsim.engine.fluid import FlowClass, Fluid
from hwsim.families.services.actors.stations import NEVER, Member


class Shared:
    """A station of one or several capacities; one piece of work may use several of them at once.

    Args:
        flows: kinds of work.
        capacities: number of capacities. With several, `busy` stays 0.
    """

    def __init__(self, flows: Sequence[FlowClass], capacities: int) -> None:
        self._fluid, self._is_one = Fluid((), capacities), capacities == 1
        for flow in flows:
            self._fluid.extend(flow, passing=True)
        self._members: dict[int, Member] = {}
        self._joined = self._last = 0
        self.area = self.busy = 0
        self.due = NEVER

    def join(self, flow: int, time: int, member: Member, instant: int) -> None:
        """Add a member that takes `time` fs when alone."""
        self.count(instant)
        self._joined += 1
        self._members[self._joined] = member
        self._fluid.join(flow, self._joined, time, instant)
        self._settle(instant)

    def leave(self, now: int) -> list[Member]:
        """Remove and return the members that end now."""
        self.count(now)
        ended = [op for number, due in enumerate(self._fluid.due) if due == now for op in self._fluid.leave(number, now)]
        self._settle(now)
        return [self._members.pop(op) for op in sorted(ended)]

    def count(self, now: int) -> int:
        """Update the statistics, and return the number of members."""
        passed = now - self._last
        self.area += len(self._members) * passed
        if self._is_one:
            self.busy += min(self._fluid.drawn[0], FULL) * passed
        self._last = now
        return len(self._members)

    def used(self, end: int) -> float:
        """Return the utilization from 0 to `end`."""
        return self.busy / FULL / end

    def _settle(self, now: int) -> None:
        self._fluid.settle(now)
        self.due = min((due for due in self._fluid.due if due >= 0), default=NEVER)
