"""What the fast engines are held against: the edges of a graph by definition, and a run by SimPy alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hwsim.engine import Host, PlainEngine, Waits
from hwsim.graph.opgraph import LAST, PAIRED, OpGraph


@dataclass(frozen=True)
class Played:
    """Start and end (fs, -1: never) of every op, and whose end let it into its pool."""

    start: list[int]
    end: list[int]
    granted: list[int]


def edges(graph: OpGraph) -> list[tuple[int, int]]:
    """(from, to) of all iterations, by definition: edges, ties, program order, depths."""
    number: dict[tuple[int, int, int], int] = {}  # (block, iteration, position) -> op
    for block, body in enumerate(graph.blocks):
        for iteration in range(body.times):
            for position in range(len(body)):
                number[block, iteration, position] = len(number)
    found = []
    lines: list[list[tuple[int, int]]] = [[] for _ in graph.queues]  # (op, who inserts it)
    for (block, iteration, position), op in number.items():
        body = graph.blocks[block]
        for source, target, lag in body.edges.tolist():
            if target == position and lag <= iteration:
                found.append((number[block, iteration - lag, source], op))
        if body.queue[position] >= 0:
            inserter = int(body.insert[position])
            lines[body.queue[position]].append((op, -1 if inserter < 0 else number[block, iteration, inserter]))
    for before, source, after, target, mode in graph.ties.tolist():
        times = graph.blocks[before].times
        found += [
            (number[before, iteration, source], number[after, iteration if mode == PAIRED else 0, target])
            for iteration in range(times)
            if mode != LAST or iteration == times - 1
        ]
    for queue, line in zip(graph.queues, lines, strict=True):
        for place, (op, inserter) in enumerate(line):
            if place:
                found.append((line[place - 1][0], op))
            if queue.depth is not None and place >= queue.depth and inserter >= 0:
                found.append((line[place - queue.depth][0], inserter))
    return sorted(found)


def limiting(host: Host, at: int, capacity: str, fraction: float) -> Waits:
    yield host.env.timeout(at)
    host.limit(capacity, fraction)


def play(graph: OpGraph, *, later: Sequence[tuple[int, OpGraph]] = (), limits: Sequence[tuple[int, int, float]] = ()) -> Played:
    """Play a graph from 0, others from (fs, graph) on, while capacities change at (fs, number, fraction)."""
    limited = {graph.capacities[capacity].name for _, capacity, _ in limits}
    run = PlainEngine(graph.capacities, graph.pools, limited=limited)
    run.submit(graph)
    for instant, other in later:
        run.submit(other, instant)
    for instant, capacity, fraction in limits:
        run.env.process(limiting(run, instant, graph.capacities[capacity].name, fraction))
    timeline = run.run()
    return Played(timeline.start.tolist(), timeline.end.tolist(), timeline.granted.tolist())
