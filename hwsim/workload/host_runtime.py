"""The runtime of a program during emission: times of its threads, and rules of its buffers."""

from __future__ import annotations

from hwsim.graph.opgraph import Freeing
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class HostTime:
    """A time that the threads spend.

    Args:
        cost: index of the cost per rank; -1: none.
        time: duration (fs) of the op on a rank without a cost.
    """

    cost: tuple[int, ...]
    time: int

    def of(self, rank: int) -> tuple[int, int]:
        """Return (cost, time) of a rank's op; the time is 0 if the op has a cost."""
        return self.cost[rank], 0 if self.cost[rank] >= 0 else self.time


@dataclass(frozen=True, slots=True)
class HostRuntime:
    """The times that the threads of a program spend, with the rules of its buffers.

    Args:
        dispatch, layer, issue: time to issue an op, an op of a `call` that is not compiled, and an op of a compiled body.
        back: time to return from a wait.
        call, compile: time to call and to compile a body.
        bounded: whether the queues have a maximum depth.
        late: whether buffers are allocated when their op runs, instead of when it is issued.
        free: rule by which buffers are freed.
    """

    dispatch: HostTime
    layer: HostTime
    issue: HostTime
    back: HostTime
    call: HostTime
    compile: HostTime
    bounded: bool
    late: bool
    free: Freeing
