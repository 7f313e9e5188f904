"""Graphs with all their times a power of two longer, and every sum of times that a run tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hwsim import ticks
from hwsim.demand import Cost
from hwsim.families.pipeline.starvation import buffers, pipelines
from hwsim.graph.opgraph import Block, OpGraph
from hwsim.results.activities import activities
from hwsim.results.critical import critical_path
from hwsim.results.memory import memory
from hwsim.results.result import Result
from hwsim.results.timeline import Timeline
from hwsim.results.usage import usage
from hwsim.views.explain.steps import runs


def stretched(graph: OpGraph, power: int) -> OpGraph:
    """The graph with own times, latencies, floors and amounts 2**power times as large: floats stay exact."""
    factor = 2**power

    def longer(cost: Cost) -> Cost:
        demand = cost.demand
        amounts = tuple((name, amount * factor) for name, amount in demand.amounts)
        scaled = replace(demand, latency=demand.latency * factor, floor=demand.floor * factor, amounts=amounts)
        return replace(cost, demand=scaled)

    def later(block: Block) -> Block:
        return replace(block, time=ticks.multiply(ticks.column(block.time), factor))

    return replace(graph, costs=tuple(map(longer, graph.costs)), blocks=tuple(map(later, graph.blocks)))


def sums(timeline: Timeline) -> dict[tuple[str, ...], int]:
    """Every time in fs that results and explain tell of a run, by name."""
    path = critical_path(timeline)
    found: dict[tuple[str, ...], int] = {("makespan",): timeline.makespan_fs}
    for capacity in usage(timeline):
        found["busy", capacity.capacity] = capacity.busy_fs
    done = activities(Result("m", "w", timeline, usage(timeline)))
    for row in done.rows:
        found |= {("ran", row.name): row.total_fs, ("path", row.name): row.path_fs}
    found["bounds",] = sum(part.time_fs for part in done.parts)
    found["causes",] = sum(share.time_fs for share in path.limited_by)
    found["steps",] = sum(step.time_fs for run in runs(timeline, path) for step in run.steps)
    for line in pipelines(timeline):
        for phase in (line.whole, *line.epochs):
            name = line.program, str(phase.epoch)
            found |= {("phase", *name): phase.time_fs, ("idle", *name): phase.idle_fs}
            found |= {("stage", *name, stage.name): stage.busy_fs for stage in phase.stages}
    for buffer in buffers(timeline):
        found["buffer", buffer.program, buffer.before, buffer.then] = int(buffer.time.max(initial=0))
    for device in memory(timeline, {}):
        found["peak at", device.device] = device.at_fs
    return found


def assert_in_proportion(
    base: Mapping[tuple[str, ...], int], longer: Mapping[tuple[str, ...], int], factor: int, slack: int
) -> None:
    """Every sum is `factor` times as large, within `slack` fs of the shorter run."""
    assert set(longer) <= set(base) or slack
    for name, time in longer.items():
        assert abs(time - factor * base.get(name, 0)) <= slack * factor, (name, time, factor * base.get(name, 0))
    assert longer["makespan",] == longer["causes",] == longer["bounds",] == longer["steps",]
