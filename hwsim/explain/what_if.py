"""The next bottleneck, by simulating again with one thing twice as good and the rest as it is.

Twice as good is, for a capacity, twice its rate, and half of those latencies and floors whose derivation names it; for a
time that the workload states, for issuing and for returning, half the time; for a pool twice the servers.
What a capacity does for kernels and collectives whose time is a model's own (`cause.MODELLED`) a replay cannot know: the
workload is prepared again on the machine with that part changed, where the caller can (`Again`); else it is left out and
named.  Their own time halved is tried by replay.  A service forms other batches when its times change, so that of a run
with services only what is prepared again is tried.

In a graph with several queues a better part may make the whole slower (Graham, 1969): a speed-up below 1 is possible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from hwsim.demand import Capacity, Cost
from hwsim.explain.cause import HOST, STATED, Cause, binding_label, is_modelled, link
from hwsim.explain.critical import CriticalPath, Share, critical_path
from hwsim.explain.family import family
from hwsim.opgraph import Block, Change, OpGraph
from hwsim.results.timeline import FEMTO, Timeline
from hwsim.results.usage import Usage

MOST: Final = 12  # things tried
FASTER: Final = " twice as fast"
LARGEST: Final = 200_000  # ops of a graph that is simulated again unasked
AGAIN: Final = 50_000  # ops of a run that is prepared again
ANEW: Final = 4  # times at most

Again: TypeAlias = Callable[[str], Timeline | None]
"""The run with the capacities of this name and its family twice as fast, all prepared again; None: it cannot be."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What came of one change.  limited_by: on the critical path of the changed run, longest first.

    makespan_fs: None if the ops would wait for each other for ever: with pools that can depend on who comes first.
    """

    change: str
    makespan_fs: int | None
    speedup: float
    limited_by: tuple[Share, ...]

    @property
    def makespan_s(self) -> float | None:
        """Seconds."""
        return None if self.makespan_fs is None else self.makespan_fs / FEMTO


@dataclass(frozen=True, slots=True)
class Tried:
    """What was tried, the most helpful first.  untried: how many more there would be.

    modelled: parts left out as only a run of its own can tell what they would do.  service: replaying means nothing.
    """

    rows: tuple[WhatIf, ...]
    untried: int = 0
    modelled: tuple[str, ...] = ()
    service: bool = False


@dataclass(frozen=True, slots=True)
class _Change:
    text: str
    path_fs: int  # what the run waits for it now
    busy_fs: int
    apply: Callable[[OpGraph], OpGraph]
    again: str = ""  # a capacity with which a replay would not tell the truth


def what_if(
    timeline: Timeline,
    path: CriticalPath,
    usage: Sequence[Usage],
    disturbed: Sequence[Change] = (),
    *,
    service: bool = False,
    again: Again | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Tried:
    """Try one change after another, those first that the run waits for longest.

    disturbed: what events made of the capacities; they come at the same times again.
    service: actors issued ops while the run went on.
    again: prepares the run again; None: nobody can.
    progress: called with the changes tried and to be tried.
    """
    changes = sorted(_changes(timeline, path, usage), key=lambda one: (-one.path_fs, -one.busy_fs, one.text))
    left = [change for change in changes if change.again] if again is None or len(timeline) > AGAIN else []
    left += [change for change in changes if change.again and change not in left][ANEW:]
    changes = [change for change in changes if change not in left and (change.again or not service)]
    found = []
    for number, change in enumerate(changes[:MOST]):
        if not change.again:
            found.append(_try(timeline, change, disturbed))
        elif again is not None and (other := again(change.again)) is not None:
            found.append(_compared(timeline, change, other))
        else:
            left.append(change)
        if progress is not None:
            progress(number + 1, min(len(changes), MOST))
    names = tuple(change.text.removesuffix(FASTER) for change in left)
    return Tried(tuple(sorted(found, key=lambda one: (-one.speedup, one.change))), max(0, len(changes) - MOST), names, service)


def _try(timeline: Timeline, change: _Change, disturbed: Sequence[Change]) -> WhatIf:
    from hwsim.engine import Deadlock, changing, simulate  # SimPy: reports that try nothing start without it

    try:
        again = simulate(change.apply(timeline.flat.graph), actors=(changing(disturbed),) if disturbed else ())
    except Deadlock:
        return WhatIf(change.text, None, 0.0, ())
    return _compared(timeline, change, again)


def _compared(timeline: Timeline, change: _Change, again: Timeline) -> WhatIf:
    speedup = timeline.makespan_fs / again.makespan_fs if again.makespan_fs else float("inf")
    return WhatIf(change.text, again.makespan_fs, speedup, critical_path(again).limited_by)


def _changes(timeline: Timeline, path: CriticalPath, usage: Sequence[Usage]) -> Iterator[_Change]:
    spent: dict[tuple[str, str, str], int] = {}
    lines: dict[tuple[str, str, str], list[Cause]] = {}
    for share in path.limited_by:
        cause = share.cause
        name = _part(cause.name) if cause.kind == "capacity" else family(cause.name)
        key = (cause.kind, name, cause.op or cause.label)
        if cause.op:
            lines.setdefault(key, []).append(cause)
        spent[key] = spent.get(key, 0) + share.time_fs
    busy: dict[str, list[Usage]] = {}
    for row in usage:
        if row.busy_fs:
            busy.setdefault(_part(row.capacity), []).append(row)
    modelled = _modelled(timeline)
    for part, rows in busy.items():
        names = frozenset(one.capacity for one in usage if _part(one.capacity) == part)
        text = part if link(rows[0].capacity) or len(names) > 1 else rows[0].capacity
        longest = max(row.busy_fs for row in rows)
        again = next((name for name in sorted(names) if name in modelled), "")
        yield _Change(f"{text}{FASTER}", spent.get(("capacity", part, ""), 0), longest, _better(names), again)
    for (kind, name, label), time in spent.items():
        where = f" on {name}" if name else ""
        match kind:
            case "time" if label == "start" and not name:
                pass  # that a job starts late is no part of anything
            case "time":
                yield _Change(f"{label}{where} in half the time", time, time, _shorter(label, name))
            case "floor" if (kind, name, label) in lines:
                said = dict.fromkeys(
                    family(str(replace(cause, label=cause.label.partition(" ")[0]))) for cause in lines[kind, name, label]
                )
                text = next(iter(said)) if len(said) == 1 else f"{label}{where}"
                yield _Change(f"{text} in half the time", time, time, _shorter(label, name, is_modelled))
            case "dispatch" | "return":
                yield _Change(f"{kind}{where} in half the time", time, time, _shorter_host(kind, name))
            case "latency":
                yield _Change(f"latency{where} halved", time, time, _prompter(name))
            case "pool":
                yield _Change(f"twice as many in {name}", time, time, _more(name))
    yield from _hidden_host(timeline, spent)


def _modelled(timeline: Timeline) -> frozenset[str]:
    """Capacities that ops draw on or hold whose own time is a model's."""
    flat = timeline.flat
    used = (flat.graph.costs[number] for number in np.unique(flat.cost).tolist() if number >= 0)
    demands = [cost.demand for cost in used if is_modelled(cost)]
    return frozenset(name for demand in demands for name, _ in (*demand.amounts, *demand.holds))


def _hidden_host(timeline: Timeline, spent: dict[tuple[str, str, str], int]) -> Iterator[_Change]:
    """Issuing and returning that nothing waits for now may come next."""
    flat = timeline.flat
    seen = sorted({(label.kind, family(label.device)) for label in flat.graph.labels if label.kind in HOST})
    for kind, name in seen:
        if (kind, name, "") not in spent:
            labels = [label.kind == kind and family(label.device) == name for label in flat.graph.labels]
            took = (timeline.end - timeline.start)[np.array(labels, np.bool_)[flat.label]]
            if took.any():
                text = f"{kind} on {name} in half the time" if name else f"{kind} in half the time"
                yield _Change(text, 0, 0, _shorter_host(kind, name))


def _part(capacity: str) -> str:
    """What is bought as one: a link in both directions, a capacity of all devices of a family."""
    named = link(capacity)
    if named:
        return f"link {family(named) if '.' in named else named}"  # node3.slots is one of many, m2 is a name
    return family(capacity)


def _better(names: frozenset[str]) -> Callable[[OpGraph], OpGraph]:
    def apply(graph: OpGraph) -> OpGraph:
        capacities = tuple(Capacity(one.name, 2 * one.rate, one.unit) if one.name in names else one for one in graph.capacities)
        return replace(graph, capacities=capacities, costs=tuple(_with_better(cost, names) for cost in graph.costs))

    return apply


def _with_better(cost: Cost, names: frozenset[str]) -> Cost:
    """Half of the latencies and of the floor where their lines name one of these capacities."""
    if not any(term.capacity in names for term in cost.why):
        return cost
    demand = cost.demand
    latency = (
        demand.latency - math.fsum(term.seconds for term in cost.why if term.label == "latency" and term.capacity in names) / 2
    )
    below = [term for term in cost.why if term.label != "latency" and term.seconds <= demand.floor * (1 + 1e-9)]
    floor = max((term.seconds / (2 if term.capacity in names else 1) for term in below), default=demand.floor)
    return replace(cost, demand=replace(demand, latency=max(0.0, latency), floor=min(floor, demand.floor)))


def _prompter(device: str) -> Callable[[OpGraph], OpGraph]:
    def apply(graph: OpGraph) -> OpGraph:
        labels = np.array([family(label.device) == device for label in graph.labels], np.bool_)
        used = {cost for block in graph.blocks for cost in np.unique(block.cost[labels[block.label]]).tolist()}
        costs = [
            replace(cost, demand=replace(cost.demand, latency=cost.demand.latency / 2)) if number in used else cost
            for number, cost in enumerate(graph.costs)
        ]
        return replace(graph, costs=tuple(costs))

    return apply


def _more(pool: str) -> Callable[[OpGraph], OpGraph]:
    def apply(graph: OpGraph) -> OpGraph:
        pools = (replace(one, servers=2 * one.servers) if family(one.name) == pool else one for one in graph.pools)
        return replace(graph, pools=tuple(pools))

    return apply


def _is_stated(cost: Cost) -> bool:
    return binding_label(cost) == STATED


def _shorter(name: str, device: str, own: Callable[[Cost], bool] = _is_stated) -> Callable[[OpGraph], OpGraph]:
    """Ops of this name whose time the workload states, or a model."""

    def apply(graph: OpGraph) -> OpGraph:
        labels = [label.name == name and family(label.device) == device and label.kind not in HOST for label in graph.labels]
        costs = [own(cost) for cost in graph.costs]
        return _halved(graph, labels, costs)

    return apply


def _shorter_host(kind: str, device: str) -> Callable[[OpGraph], OpGraph]:
    def apply(graph: OpGraph) -> OpGraph:
        labels = [label.kind == kind and family(label.device) == device for label in graph.labels]
        return _halved(graph, labels, [True] * len(graph.costs))

    return apply


def _halved(graph: OpGraph, labels: Sequence[bool], costs: Sequence[bool]) -> OpGraph:
    """Own times of these labels halved, and their bodies where they have one of these costs."""
    named, priced = np.array(labels, np.bool_), np.array([*costs, False], np.bool_)

    def half(block: Block) -> Block:
        mine = named[block.label]
        time = np.where(mine, block.time // 2, block.time)
        return replace(block, time=time, size=np.where(mine & priced[block.cost], block.size / 2, block.size))

    return replace(graph, blocks=tuple(half(block) for block in graph.blocks))
