"""Whether all copies of a model are like the first of them, so that it can stand for all.

Looked at are the ways that the devices of a copy use among themselves: between neighbours of the groups that split a matrix or
a sequence, between experts, and between stages.  Copies are alike if the same ways of each

- take equally long and draw equally much of capacities of equal rates,
- and meet the same ways of other copies there;

and what all copies exchange together asks the same of them; and if no way of the first copy is crossed by a copy on other
nodes, which the first does not speak for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from hwsim.demand import Cost, Demand
from hwsim.graph.fold.refine import Ints, Words, mixed
from hwsim.machine import Machine
from hwsim.machine.numbering import Draws
from hwsim.models import Laid
from hwsim.workload.training.layout import Layout, strides

_SIZE: Final = 1e6  # bytes on each way
_NEAR: Final = 8  # devices of a group up to which all of its ways are looked at, not only those between neighbours


def difference(machine: Machine, layout: Layout, between: Sequence[Cost]) -> str:
    """What tells copies of the model apart, in words; "" if nothing does.

    between: what all copies exchange.

    Raises:
        NoRoute: devices that work together are not linked.
    """
    held = Counter(map(machine.node_of, layout.devices)).values()
    if len(held) > 1 and len(set(held)) > 1:
        return "the nodes do not all have as many of the GPUs"
    stage, sources, targets = _ways(layout)
    copies, ways = sources.shape
    names = np.array(layout.devices, object)
    draws = machine.draws(names[sources.ravel()].tolist(), names[targets.ravel()].tolist(), _SIZE)
    form = _forms(machine, draws)[draws.shape].reshape(copies, ways)
    if (other := np.argwhere(form != form[0])).size:
        copy, way = other[0].tolist()
        at, to = (names[each[copy, way]] for each in (sources, targets))
        first = f"{names[sources[0, way]]} to {names[targets[0, way]]}"
        return f"copy {copy} of the model goes another way from {at} to {to} than the first from {first}"
    pair = draws.pairs()
    meets = _meeting(machine, draws, pair % ways, between)
    met = np.zeros(copies * ways, np.uint64)
    np.add.at(met, pair, meets)
    if (other := np.argwhere((met := met.reshape(copies, ways)) != met[0])).size:
        copy, way = other[0].tolist()
        at, to = (names[each[copy, way]] for each in (sources, targets))
        return f"copy {copy} of the model shares its way from {at} to {to} with others than the first copy does"
    foreign = _foreign(layout, draws, pair, stage, sources)
    return f"copy {foreign} of the model, on other nodes, shares links with the first" if foreign else ""


def _ways(layout: Layout) -> tuple[Ints, Ints, Ints]:
    """By way of a copy its stage; by copy and way the numbers of the devices it leads from and to."""
    laid, plan = layout.laid, layout.laid.plan
    at = strides(laid)
    within = [(tp, cp, stage) for stage in range(plan.pp) for cp in range(plan.cp) for tp in range(plan.tp)]
    rows: list[tuple[int, int, int]] = []  # stage, and within a copy from where and to where

    def place(tp: int, cp: int, stage: int) -> int:
        return tp * at["tp"] + cp * at["cp"] + stage * at["pp"]

    for tp, cp, stage in within:
        here = place(tp, cp, stage)
        rows.append((stage, here, here))  # its own memory
        rows += [(stage, here, place((tp + step) % plan.tp, cp, stage)) for step in _steps(plan.tp)]
        rows += [(stage, here, place(tp, (cp + step) % plan.cp, stage)) for step in _steps(plan.cp)]
        for other in {(stage + 1) % plan.pp, (stage - 1) % plan.pp} - {stage}:
            if abs(other - stage) == 1 or plan.chunks > 1:
                rows.append((stage, here, place(tp, cp, other)))
    inside = np.array(rows, np.int64)
    base, inner = _bases(laid)
    of_stage, sources, targets = inside[:, 0], base[:, None] + inside[:, 1], base[:, None] + inside[:, 2]
    for step in _steps(plan.ep):
        to = base - inner * at["ep"] + (inner + step) % plan.ep * at["ep"]
        own = np.array([(stage, place(tp, cp, stage)) for tp, cp, stage in within], np.int64)
        of_stage = np.concatenate([of_stage, own[:, 0]])
        sources = np.concatenate([sources, base[:, None] + own[:, 1]], axis=1)
        targets = np.concatenate([targets, to[:, None] + own[:, 1]], axis=1)
    return of_stage, sources, targets


def _bases(laid: Laid) -> tuple[Ints, Ints]:
    """By copy the number of its first device, and which of those that split the experts it is."""
    at = strides(laid)
    outer, inner = np.divmod(np.arange(laid.dp), laid.plan.ep)
    return outer * at["dp"] + inner * at["ep"], inner


def _steps(size: int) -> Sequence[int]:
    """How far from a member of a group those are that it is looked at with."""
    return range(1, size) if size <= _NEAR else (1, size - 1)


def _forms(machine: Machine, draws: Draws) -> Ints:
    """By shape a number, equal for those that take equally long, whatever they are called."""
    known: dict[object, int] = {}
    found = []
    for cost in draws.costs:
        demand = cost.demand
        rates = tuple(sorted((amount, machine.capacities[name].rate) for name, amount in demand.amounts))
        found.append(known.setdefault((demand.latency, demand.floor, demand.share, rates), len(known)))
    return np.array(found, np.int64)


def _meeting(machine: Machine, draws: Draws, way: Ints, between: Sequence[Cost]) -> Words:
    """By row a word for what it draws and for all that draws on the same capacity, equal where both are."""
    rates = np.array([machine.capacities[name].rate for cost in draws.costs for name, _ in cost.demand.amounts], np.float64)
    drawn = mixed(draws.amounts().view(np.uint64) ^ mixed(way.astype(np.uint64)))
    exchanges = [_asked(cost.demand) for cost in between]
    known: dict[object, int] = {}
    total = np.zeros(machine.capacity_numbers, np.uint64)
    np.add.at(total, draws.capacity, drawn)
    total = mixed(total)
    for number in np.unique(draws.capacity).tolist() if between else ():
        drawn_by_all = tuple(asked.get(machine.capacity_name(number)) for asked in exchanges)
        total[number] += np.uint64(known.setdefault(drawn_by_all, len(known)))
    starts = np.cumsum([0, *(len(cost.demand.amounts) for cost in draws.costs)])[:-1]
    row = np.repeat(starts[draws.shape] - draws.first[:-1], np.diff(draws.first)) + np.arange(len(draws.capacity))
    return mixed(drawn ^ mixed(total[draws.capacity]) ^ mixed(rates[row].view(np.uint64)))


def _asked(demand: Demand) -> Mapping[str, tuple[str, float]]:
    """By capacity what is drawn, to as many digits as do not depend on the order of a sum, and what is held of it."""
    held = dict(demand.holds)
    drawn = {name: (f"{amount:.12e}", held.get(name, 0.0)) for name, amount in demand.amounts}
    return {name: ("", part) for name, part in demand.holds} | drawn


def _foreign(layout: Layout, draws: Draws, pair: Ints, stage: Ints, sources: Ints) -> int:
    """The first copy on other nodes that draws on what the first copy draws on; 0 if there is none."""
    copies, ways = sources.shape
    node = sources // layout.per_node
    near = np.zeros((copies, int(stage.max(initial=0)) + 1), np.bool_)
    for one in range(near.shape[1]):
        here = node[:, stage == one]
        near[:, one] = np.isin(here, here[0]).any(axis=1)
    own = np.unique(draws.capacity[pair < ways])
    copy = pair // ways
    away = np.isin(draws.capacity, own) & ~near[copy, stage[pair % ways]]
    first: int = copy[away].min(initial=copies) % copies
    return int(first)
