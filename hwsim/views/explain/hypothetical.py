"""What-if changes that no number of the files makes: half the time of a model, a pool with twice the servers.

They are simulated on a modified op graph and marked, to distinguish them from changes by `--set`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hwsim.demand import Capacity, Cost
from hwsim.formats import family
from hwsim.graph.opgraph import Block, Label, OpGraph
from hwsim.records import dataclass
from hwsim.results.cause import HOST, Cause, binding, is_modelled, latency_parts


@dataclass(frozen=True, slots=True)
class Hypothetical:
    """A change of the op graph.

    Args:
        text: change in words.
        apply: function from an op graph to the changed one.
    """

    text: str
    apply: Callable[[OpGraph], OpGraph]


def halve_cause(cause: Cause, graph: OpGraph) -> Hypothetical | None:
    """Return a change that halves a cause; None without one."""
    name = family(cause.name)
    where = f" on {name}" if name else ""
    match cause.kind:
        case "time" if cause.label == "start" and not cause.name:
            return None  # no part causes the late start of a job
        case "time":
            return Hypothetical(f"{cause.label}{where} in half the time", _shorter(name, _is(cause.label), _is_stated))
        case "floor" if cause.op:
            line = family(str(cause._replace(label=cause.line)))
            return Hypothetical(f"{line} in half the time", _shorter(name, _is(cause.op), is_modelled))
        case "dispatch" | "return":
            shorter = _shorter(name, lambda label: label.kind == cause.kind, lambda _: True)
            return Hypothetical(f"{cause.kind}{where} in half the time", shorter)
        case "pool":
            return Hypothetical(f"twice as many servers in {name}", _more(name))
        case "capacity":
            named = capacity_title(next(capacity for capacity in graph.capacities if capacity.name == cause.name))
            return Hypothetical(f"{named} twice as fast", _faster(named))
        case "latency":
            return Hypothetical(f"latency{where} halved", _prompter(name))
    return None


def capacity_title(capacity: Capacity) -> str:
    """Return the name of a capacity or its family; a link has one name for both directions."""
    return capacity.holder if capacity.link else family(capacity.name)


def _faster(named: str) -> Callable[[OpGraph], OpGraph]:
    def apply(graph: OpGraph) -> OpGraph:
        faster = (
            replace(capacity, rate=2 * capacity.rate) if capacity_title(capacity) == named else capacity
            for capacity in graph.capacities
        )
        return replace(graph, capacities=tuple(faster))

    return apply


def _prompter(device: str) -> Callable[[OpGraph], OpGraph]:
    def apply(graph: OpGraph) -> OpGraph:
        labels = np.array([family(label.device) == device for label in graph.labels], np.bool_)
        used = {cost for block in graph.blocks for cost in np.unique(block.cost[labels[block.label]]).tolist()}

        def halved(number: int, cost: Cost) -> Cost:
            mine = [spent for name, spent in latency_parts(cost) if (family(name) == device if name else number in used)]
            latency = cost.demand.latency - math.fsum(mine) / 2
            return replace(cost, demand=replace(cost.demand, latency=latency)) if mine else cost

        return replace(graph, costs=tuple(halved(number, cost) for number, cost in enumerate(graph.costs)))

    return apply


def _more(pool: str) -> Callable[[OpGraph], OpGraph]:
    def apply(graph: OpGraph) -> OpGraph:
        pools = (replace(entry, servers=2 * entry.servers) if family(entry.name) == pool else entry for entry in graph.pools)
        return replace(graph, pools=tuple(pools))

    return apply


def _is_stated(cost: Cost) -> bool:
    line = binding(cost)
    return line is not None and line.kind == "stated"


def _shorter(device: str, is_meant: Callable[[Label], bool], has_time: Callable[[Cost], bool]) -> Callable[[OpGraph], OpGraph]:
    """Halve the own times of these ops of a device, and their bodies if the workload or a model determines the time."""

    def apply(graph: OpGraph) -> OpGraph:
        named = np.array([family(label.device) == device and is_meant(label) for label in graph.labels], np.bool_)
        priced = np.array([*map(has_time, graph.costs), False], np.bool_)

        def half(block: Block) -> Block:
            mine = named[block.label]
            time = np.where(mine, block.time // 2, block.time)
            return replace(block, time=time, size=np.where(mine & priced[block.cost], block.size / 2, block.size))

        return replace(graph, blocks=tuple(half(block) for block in graph.blocks))

    return apply


def _is(name: str) -> Callable[[Label], bool]:
    return lambda label: label.name == name and label.kind not in HOST
