"""Total requests of a run to its disks, where they exceed what the closed form of one op can know.

A model answers for one op and forgets it: the next op finds an empty cache and full credits. Here equal ops on one disk are
added up and asked for as one op. If that takes longer than the single ops, the run warns.
Range: ops of other sizes count at their mean size; reads and writes apart. Pauses between the ops, in which a cache empties
and credits come back, are ignored: with them the time is between the two times of the warning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
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
            ops *= _ranks(cost, {each.name for each in graph.capacities if each.device == requests.device})
            total = by_sort.setdefault(_sort(requests), _Total())
            total.ops += ops
            total.times += ops * requests.count
            total.bytes += ops * requests.count * requests.size
            total.seconds += ops * cost.demand.alone(rates)
    return by_sort


def _ranks(cost: Cost, own: Collection[str]) -> int:
    """Number of ranks for which the cost stands, in a folded graph.  own: capacities of its device."""
    drawn = (*cost.demand.drawn, *cost.demand.held)
    return max((times for name, _, times in drawn if name in own), default=1)


def _sort(requests: Requests) -> Requests:
    return Requests(
        device=requests.device,
        count=0,
        size=0,
        pattern=requests.pattern,
        span=requests.span,
        write_share=requests.write_share,
        depth=requests.depth,
        sync=requests.sync,
    )


def _forgotten(by_sort: dict[Requests, _Total], machine: Machine) -> Iterator[Warning]:
    if not by_sort:
        return
    from hwsim.devices.storage import Asked

    rates = machine.rates()
    for sort, total in by_sort.items():
        if total.ops <= 1 or total.bytes <= 0:
            continue
        together = Asked(
            size=total.bytes / total.times,
            times=total.times,
            access="sequential" if sort.pattern == "sequential" else "random",
            depth=sort.depth or 1,
            region=sort.span or None,
            sync=sort.sync,
            written=sort.write_share if sort.write_share < 1 else 0.0,
        )
        once = machine.serve(sort.device, "write" if sort.write_share >= 1 else "read", together).demand.alone(rates)
        if once > LEAST * total.seconds:
            kind = machine.device(sort.device).kind
            anew = kind == "hdd" and sort.pattern == "sequential"
            yield Warning(
                "faster-apart",
                f"each of the {total.ops:,.0f} {_noun(sort)} {sort.device} "
                f"{_OUTSIDE if anew else _FINDS.get(kind, 'finds it as new')}: {format_quantity(total.seconds, 's')} together; "
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
        match machine.device(name).model:
            case Cpu(memory=memory) | Gpu(memory=memory):
                size = memory.size
            case Memory(size=own):
                size = own
            case _:
                size = None
        if size is not None and span > size:
            yield Warning(
                "working-set-too-large",
                f"a working set of {format_quantity(span, 'B')} does not fit into the memory of {name}, "
                f"{format_quantity(size, 'B')}: nothing is swapped here",
            )
