"""Warnings for the total of all requests of a run to a disk, which the closed form of a single op does not include.

The model of a disk has no state between ops: each op starts with an empty cache and full credits. Here all similar ops on a disk
are combined into one op. If the combined op takes longer than the sum of the single ops, the run warns.
Range: ops of different sizes count with their average size. Reads and writes are separate, except for credits, which they share.
Pauses between ops, in which a cache empties and credits recover, are ignored; with pauses, the actual time is between the two
times of the warning.
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

LEAST: Final = 1.01  # ratio of combined to separate time from which the run warns
_FINDS: Final = {"volume": "with full credits", "ssd": "with an empty cache", "hdd": "with an empty cache"}
_OUTSIDE: Final = "at the outer edge"
_REGION: Final = "; if they access the same bytes, set `region`"


@dataclass(slots=True)
class _Total:
    """A total of similar ops on one disk: ops, accesses (`times`), bytes, and the sum of their durations (s)."""

    ops: float = 0.0
    times: float = 0.0
    bytes: float = 0.0
    seconds: float = 0.0


def totals(graph: OpGraph, machine: Machine) -> tuple[Warning, ...]:
    """Return warnings for ops that are faster than one combined op, for overfull disks and for oversized working sets."""
    by_sort = _requests_by_sort(graph, machine)
    return (*_forgotten(by_sort, machine), *_overflowing(by_sort, machine), *_too_large(graph, machine))


def _requests_by_sort(graph: OpGraph, machine: Machine) -> dict[Requests, _Total]:
    rates = rates_of(graph.capacities)
    op_counts = np.zeros(len(graph.costs))
    for block in graph.blocks:
        uses = block.cost >= 0
        op_counts += block.times * np.bincount(block.cost[uses], weights=block.size[uses], minlength=len(op_counts))
    by_sort: dict[Requests, _Total] = {}
    for cost, ops in zip(graph.costs, op_counts.tolist(), strict=True):
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
    """Number of ranks that the cost represents in a folded graph; `own`: capacities of its device."""
    drawn = (*cost.demand.drawn, *cost.demand.held)
    return max((times for name, _, times in drawn if name in own), default=1)


def _forgotten(by_sort: dict[Requests, _Total], machine: Machine) -> Iterator[Warning]:
    if not by_sort:
        return
    from hwsim.devices.storage import StorageAccesses

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
        used = [total.bytes * (sort.write_share if kind == "ssd" and sort.write_share else 1.0) for sort, total in pool]
        if ops <= 1:
            continue
        combined = 0.0
        for (part, total), own in zip(pool, used, strict=True):
            more = math.fsum(used) / own  # ops of other shapes use the same cache or credits
            request = StorageAccesses(
                size=total.bytes / total.times,
                times=total.times * more,
                access="sequential" if part.pattern == "sequential" else "random",
                depth=part.depth or 1,
                region=part.span or None,
                sync=part.sync,
                written=part.write_share if part.write_share < 1 else 0.0,
            )
            served = machine.serve(part.device, "write" if part.write_share >= 1 else "read", request)
            combined += served.demand.alone(rates) / more
        if combined > LEAST * seconds:
            restarts = kind == "hdd" and sort.pattern == "sequential"
            noun = _noun(sort) if len({part.write_share for part, _ in pool}) == 1 else "accesses of"
            yield Warning(
                "split-access-faster",
                f"the {ops:,.0f} {noun} {sort.device} take {format_quantity(seconds, 's')} in total, because each starts "
                f"{_OUTSIDE if restarts else _FINDS.get(kind, 'on an idle device')}; one op with all bytes takes "
                f"{format_quantity(combined, 's')}, so the run may be too fast{_REGION if restarts else ''}",
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
                "disk-full",
                f"{format_quantity(size, 'B')} are written to {name}, which holds {format_quantity(holds, 'B')}; the simulated "
                "disk never becomes full, so the run may be too fast; if the writes overwrite the same bytes, set `region`",
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
                f"a working set of {format_quantity(span, 'B')} exceeds the memory of {name} ({format_quantity(size, 'B')}); "
                "swapping is not simulated, so the run is too fast",
            )
