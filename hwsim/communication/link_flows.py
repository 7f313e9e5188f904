"""A phase over several kinds of links with unequal amounts, as one flow for each kind.

A capacity is shared in proportion to the share of each demand, which is one number. If a demand drew a tenth of its share from a
link, it would get a tenth of a copy's bandwidth there, even without other traffic. So links with similar amounts form a flow,
whose share is its amount on the slowest of these links. All flows of a phase start together, none is faster than the phase
without contention, and the phase ends with the last flow.

Error: none without contention. The flows wait for each other only at their end, as if buffers between the links were unlimited:
their effect on other traffic is right on average, but not at each moment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np

from hwsim.demand import AmountColumns, Cost, Demand, Term
from hwsim.formats import precise
from hwsim.machine import Machine
from hwsim.records import dataclass

KindOf = Callable[[str], str | None]  # capacity -> kind of link
LIKE: Final = 0.8  # minimum ratio of similar amounts; packet headers differ by less


@dataclass(frozen=True, slots=True)
class Flow:
    """A part of a phase with its own share of links.

    Args:
        over: kinds of its links, as text; "" for the first flow, which takes longest and also draws from devices.
    """

    over: str
    cost: Cost


@dataclass(slots=True)
class _Links:
    """Kinds of links that carry similar numbers of bytes; `share` is the number on the slowest of them."""

    kinds: list[str]
    share: float


def link_kinds(machine: Machine) -> KindOf:
    """Return a function from the name of a capacity to its kind of link: "" for a NIC; None if it carries no bytes."""
    return cache(lambda name: machine.link_kind(name) if machine.capacities[name].unit == "B" else None)


def flows_of(machine: Machine, cost: Cost, kind_of: KindOf) -> tuple[Flow, ...]:
    """Return the flows of a phase; only the phase itself if all its links have similar amounts."""
    links = _group_links(machine, cost, kind_of)
    if len(links) < 2:
        return (Flow("", cost),)
    wires = () if cost.wide is None else cost.wide.kinds
    body = max([cost.demand.body(machine.rates()), *(wire.amount / wire.capacity.rate for wire in wires)])
    first = _select(cost, kind_of, [kind for link in links[1:] for kind in link.kinds], without=True)
    flows = [Flow("", replace(first, demand=replace(first.demand, share=links[0].share)))]
    for link in links[1:]:
        part = _select(cost, kind_of, link.kinds)
        demand = Demand(cost.demand.latency, part.demand.amounts, body, share=link.share)
        flows.append(Flow(" and ".join(filter(None, link.kinds)), Cost(demand, part.moved, _terms(cost, body), wide=part.wide)))
    return tuple(flows)


def _group_links(machine: Machine, cost: Cost, kind_of: KindOf) -> list[_Links]:
    """Return the kinds of links that a cost draws from, grouped by similar amounts, slowest first."""
    amounts = [(machine.capacities[name], amount) for name, amount in cost.demand.amounts]
    if cost.wide is not None:
        amounts += [(wire.capacity, wire.amount) for wire in cost.wide.kinds]
    slowest: dict[str, tuple[float, float]] = {}  # kind -> (seconds, amount)
    for capacity, amount in amounts:
        kind = kind_of(capacity.name)
        if kind is not None and capacity.kind != "both":
            slowest[kind] = max(slowest.get(kind, (0.0, 0.0)), (amount / capacity.rate, amount))
    links: list[_Links] = []
    for kind, (_, amount) in sorted(slowest.items(), key=lambda row: (-row[1][0], row[0])):
        like = next((link for link in links if LIKE <= amount / link.share <= 1 / LIKE), None)
        if like is None:
            links.append(_Links([kind], amount))
        else:
            like.kinds.append(kind)
    return links


def _select(cost: Cost, kind_of: KindOf, kinds: Sequence[str], *, without: bool = False) -> Cost:
    """Return the cost with only the amounts on these kinds of links, or with all except these."""

    def belongs(name: str) -> bool:
        return (kind_of(name) in kinds) is not without

    return replace(
        cost,
        demand=replace(cost.demand, amounts=tuple([draw for draw in cost.demand.amounts if belongs(draw[0])])),
        moved=tuple([row for row in cost.moved if belongs(row[0])]),
        wide=cost.wide and _select_wide(cost.wide, belongs),
    )


def _select_wide(wide: AmountColumns, belongs: Callable[[str], bool]) -> AmountColumns | None:
    kept = np.array([belongs(wire.capacity.name) for wire in wide.kinds], np.bool_)
    if not kept.any():
        return None
    places = np.flatnonzero(kept[wide.kind])
    indices = (np.cumsum(kept) - 1).astype(wide.kind.dtype)
    kinds = tuple([wire for wire, is_kept in zip(wide.kinds, kept, strict=True) if is_kept])
    return replace(wide, numbers=wide.numbers[places], kind=indices[wide.kind[places]], kinds=kinds)


def _terms(cost: Cost, body: float) -> tuple[Term, ...]:
    """Return the derivation of a flow that is no faster than its phase."""
    bodies = [term for term in cost.why if term.kind != "latency"]
    longest = max(bodies, key=lambda term: term.seconds, default=None)
    inputs = (("flow", precise(body, "s"), "of the whole phase: its links wait for each other"),)
    waits = tuple([term for term in cost.why if term.kind == "latency"])
    return (*waits, Term("flow", "flow", inputs, body, kind="flow", doubts=longest.doubts if longest is not None else ()))
