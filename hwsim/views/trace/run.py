"""A run as a trace: slices, ranks of the tracks, and calls."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from hwsim.demand import Capacity, Cost, by_name
from hwsim.records import dataclass
from hwsim.results.result import Result
from hwsim.views.trace.calls import Calls, calls_of, ranks_of
from hwsim.views.trace.slices import TraceSlices, kinds_of, slices_of


@dataclass(frozen=True)
class TracedRun:
    """A run with its slices and calls.

    Args:
        result: result.
        slices: slices.
        ranks: rank of each track.
        calls: calls.
    """

    result: Result
    slices: TraceSlices
    ranks: tuple[int, ...]
    calls: Calls

    @property
    def world(self) -> int:
        """Number of ranks."""
        return max(self.ranks, default=0) + 1

    @cached_property
    def kinds(self) -> Mapping[str, str]:
        """Kind of each device."""
        return kinds_of(self.result)

    @cached_property
    def capacities(self) -> Mapping[str, Capacity]:
        """Capacities of the run by name."""
        return by_name(self.result.timeline.flat.graph.capacities)

    def cost_of(self, op: int) -> Cost | None:
        """Return the cost of an op; None without one."""
        cost = int(self.result.timeline.flat.cost[op])
        return self.result.timeline.flat.graph.costs[cost] if cost >= 0 else None

    @cached_property
    def rank_of(self) -> dict[str, int]:
        """Rank of each GPU."""
        return {track.device: rank for track, rank in zip(self.slices.tracks, self.ranks, strict=True) if track.on_gpu}


def run_of(result: Result) -> TracedRun:
    """Return the slices and calls of a result."""
    slices = slices_of(result)
    ranks = ranks_of(slices)
    return TracedRun(result, slices, ranks, calls_of(slices, ranks))
