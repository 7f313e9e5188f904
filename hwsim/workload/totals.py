"""Total requests of a run to its disks, where they exceed what the closed form of one op can know.

A model answers for one op and forgets it: the next op finds an empty cache and full credits. Here equal ops on one disk are
added up and asked for as one op. If that takes longer than the single ops, the run warns.
Range: ops of other sizes count at their mean size; reads and writes apart, but for credits, which they share. Pauses between the
ops, in which a cache empties and credits come back, are ignored: with them the time is between the two times of the warning.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from hwsim.demand import Cost, Requests, rates_of
from hwsim.devices import Cpu, Gpu, Memory, Storage
from hwsim.formats import format_quantity
from hwsim.graph.opgraph import OpGraph
from hwsim.machine import Machine
from hwsim.records import dataclass
from hwsim.spec import Warning

LEAST: Final = 1.01  # below this many times as long nothing is said
_FINDS: Final = {"volume": "finds its credits full", "ssd": "finds its cache empty", "hdd": "finds its cache empty"}
_OUTSIDE: Final = "starts at its outer edge"
_REGION: Final = "; `region` says that they go over the same bytes"


@dataclass(slots=True)
class _Total:
    """Ops of one sort on one disk: how many, their accesses and bytes, and how long they take one after another."""

    ops: float = 0.0
    times: float = 0.0
    bytes: float = 0.0
    seconds: float = 0.0


def totals(graph: OpGraph, machine: Machine) -> tuple[Warning, ...]:
    """Warnings: ops that are faster apart than together, more bytes than a disk holds, a working set that no memory holds."""
    by_sort = _together(graph, machine)
    return (*_forgotten(by_sort, machine), *_overflowing(by_sort, machine), *_too_large(graph, machine))


def _together(graph: OpGraph, machine: Machine) -> dict[Requests, _Total]:
    """Total of the requests of each sort."""
    rates = rates_of(graph.capacities)
    many = np.zeros(len(graph.costs))
    for block in graph.blocks:
        uses = block.cost >= 0
        many += block.times * np.bincount(block.cost[uses], weights=block.size[uses], minlength=len(many))
    by_sort: dict[Requests, _Total] = {}
    for cost, ops in zip(graph.costs, many.tolist(), strict=True):
        requests = cost.requests
        if requests is None or ops <= 0 or requests.device not in machine.devices:
            continue
        if isinstance(machine.devices[requests.device].model, Storage):
            ops *= _ranks(cost, {capacity.name for capacity in graph.capacities if capacity.device == requests.device})
            total = by_sort.setdefault(replace(requests, count=0, size=0, stride=0, seed=0), _Total())
            total.ops += ops
            total.times += ops * requests.count
            total.bytes += ops * requests.count * requests.size
            total.seconds += ops * cost.demand.alone(rates)
    return by_sort


def _ranks(cost: Cost, own: Collection[str]) -> int:
    """Number of ranks for which the cost stands, in a folded graph.  own: capacities of its device."""
    drawn = (*cost.demand.drawn, *cost.demand.held)
    return max((times for name, _, times in drawn if name in own), default=1)


def _forgotten(by_sort: dict[Requests, _Total], machine: Machine) -> Iterator[Warning]:
    if not by_sort:
        return
    from hwsim.devices.storage import Asked

    rates = machine.rates()
    pools: dict[Requests | tuple[str, str], list[tuple[Requests, _Total]]] = {}
    for sort, total in by_sort.items():
        if total.bytes <= 0:
            continue
        kind = machine.device(sort.device).kind
        shared = kind == "volume" or (kind == "ssd" and sort.write_share > 0 and not sort.sync)
        pools.setdefault((sort.device, kind) if shared else sort, []).append((sort, total))
    for pool in pools.values():
        sort, _ = pool[0]
        kind = machine.device(sort.device).kind
        ops, seconds = sum(total.ops for _, total in pool), math.fsum(total.seconds for _, total in pool)
        used = [total.bytes * (each.write_share if kind == "ssd" and each.write_share else 1.0) for each, total in pool]
        if ops <= 1:
            continue
        once = 0.0
        for (each, total), own in zip(pool, used, strict=True):
            more = math.fsum(used) / own  # of the cache or the credits the ops of other shapes have a part, too
            together = Asked(
                size=total.bytes / total.times,
                times=total.times * more,
                access="sequential" if each.pattern == "sequential" else "random",
                depth=each.depth or 1,
                region=each.span or None,
                sync=each.sync,
                written=each.write_share if each.write_share < 1 else 0.0,
            )
            served = machine.serve(each.device, "write" if each.write_share >= 1 else "read", together)
            once += served.demand.alone(rates) / more
        if once > LEAST * seconds:
            anew = kind == "hdd" and sort.pattern == "sequential"
            alike = len({each.write_share for each, _ in pool}) == 1
            yield Warning(
                "faster-apart",
                f"each of the {ops:,.0f} {_noun(sort) if alike else 'accesses of'} {sort.device} "
                f"{_OUTSIDE if anew else _FINDS.get(kind, 'finds it as new')}: {format_quantity(seconds, 's')} together; "
                f"in one op of all the bytes it takes {format_quantity(once, 's')}{_REGION if anew else ''}",
            )


def _noun(sort: Requests) -> str:
    return "writes to" if sort.write_share >= 1 else "accesses of" if sort.write_share > 0 else "reads of"


def _overflowing(by_sort: dict[Requests, _Total], machine: Machine) -> Iterator[Warning]:
    written: dict[str, float] = {}
    for sort, total in by_sort.items():
        size = total.bytes * sort.write_share
        written[sort.device] = written.get(sort.device, 0.0) + (min(size, sort.span) if sort.span else size)
    for name, size in written.items():
        model = machine.device(name).model
        holds = getattr(model, "holds", getattr(model, "size", None))
        if holds is not None and size > holds * (1 + 1e-9):
            yield Warning(
                "disk-overfull",
                f"{format_quantity(size, 'B')} are written to {name}, which holds {format_quantity(holds, 'B')}: "
                "it never becomes full here; say the `region` that is written over",
            )


def _too_large(graph: OpGraph, machine: Machine) -> Iterator[Warning]:
    largest: dict[str, float] = {}
    for cost in graph.costs:
        if cost.requests is not None and cost.requests.device in machine.devices:
            largest[cost.requests.device] = max(largest.get(cost.requests.device, 0.0), cost.requests.span)
    for name, span in largest.items():
        model = machine.device(name).model
        size = model.memory.size if isinstance(model, Cpu | Gpu) else model.size if isinstance(model, Memory) else None
        if size is not None and span > size:
            yield Warning(
                "working-set-too-large",
                f"a working set of {format_quantity(span, 'B')} does not fit into the memory of {name}, "
                f"{format_quantity(size, 'B')}: nothing is swapped here",
            )
