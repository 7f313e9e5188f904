"""Latency of dependent random reads, with one chain and with two, on small computers: tinymembench in sbc-bench.

The measured value is the latency beyond L1. Cache sizes and TLB reaches are from datasheets; the additional latency of each
level is fitted to alternate sizes of each device. Values below 0.2 ns are at the benchmark's resolution (it prints tenths) and
mean that L1 holds all data.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hwsim.devices import Accesses, Cpu
from hwsim.devices.cache import CacheLevel
from published.parts import declared, part, table
from published.residual import Residual, left_out, of_miss
from published.score import Half, Miss, Score, held_out, scored

NAME: Final = "it"
RESOLUTION: Final = 0.15e-9
PARTS: Final[tuple[tuple[str, str], ...]] = tuple(map(tuple, declared("tinymembench")["parts"]))


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement."""

    name: str
    group: str
    part: str
    size: float
    chains: int
    seconds: float


def rows(data: Path) -> Iterator[Row]:
    """Return every measurement above the resolution."""
    for row in table(data / "validation" / "06_cpulat.csv"):
        if not row["kind"].startswith("tinymembench") or row["flag"] or float(row["value"]) < RESOLUTION:
            continue
        words = f"{row['hardware']} {row['software']}"
        name = next(part for word, part in PARTS if word in words)
        chains = 2 if "dual" in row["kind"] else 1
        size = float(row["buffer_bytes"])
        group = f"{row['source'].partition('@')[0].rpartition('/')[2]} {row['hardware']} {row['software'].rpartition(' on ')[2]}"
        yield Row(f"{size / 1024:.0f} KiB, {chains} chain{'s' * (chains > 1)}", group, name, size, chains, float(row["value"]))


def beyond_first_level(cpu: Cpu, size: float, chains: int) -> float:
    """Return the benchmark's value: seconds of a read in each chain, minus the latency of L1."""
    count = 1e6
    far, near = (
        cpu.access(
            NAME, Accesses(count=count * chains, size=1, pattern="dependent", working_set=over, cores=1, chains=chains)
        ).demand.alone({capacity.name: capacity.rate for capacity in cpu.capacities(NAME)})
        for over in (size, 1024.0)
    )
    return max((far - near) / count, RESOLUTION / 2)


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of held-out sizes, of all sizes, and of held-out devices and cores."""
    found = list(rows(data))
    out = []
    chosen_of: tuple[tuple[str, list[Row], Half], ...] = (
        ("held-out sizes", _odd(found), "interpolated"),
        ("all sizes", found, "partly fitted"),
    )
    for name, chosen, half in chosen_of:
        misses = [
            Miss(row.name, beyond_first_level(part(Cpu, row.part), row.size, row.chains), row.seconds, row.group)
            for row in chosen
        ]
        out.append(
            scored(
                f"latency of random reads by working set, {name}",
                misses,
                0.10,
                half,
                why=_why,
            )
        )
    for name, case, reached in (
        ("held-out device with the same core", "device", None),
        ("held-out core type", "generation", 0.242),
    ):
        left = [residual.miss for residual in residuals(data) if residual.case == case]
        out.append(
            scored(
                f"latency of random reads by working set, {name}",
                left,
                0.15,
                "cross-validated",
                why=_why,
                reached=reached,
            )
        )
    return tuple(out)


CORES: Final[Mapping[str, Sequence[str]]] = declared("tinymembench")["cores"]


@functools.cache
def as_others(name: str, others: tuple[str, ...]) -> Cpu:
    """Return the part with the other parts' latencies: caches in cycles, memory and TLBs in seconds."""
    cpu, known = part(Cpu, name), [part(Cpu, other) for other in others]
    caches = cpu.caches
    if caches is None:
        return cpu
    levels: dict[str, CacheLevel] = {}
    for index, (label, level) in enumerate(caches.levels.items()):
        cycles = [
            list(peer.caches.levels.values())[index].time(peer.clock_of("scalar", 1)) * peer.clock_of("scalar", 1)
            for peer in known
            if peer.caches is not None and len(peer.caches.levels) > index
        ]
        least = max((inner_level.time(cpu.clock_of("scalar", 1)) for inner_level in levels.values()), default=0.0)
        usual = statistics.median(cycles) / cpu.clock_of("scalar", 1) if cycles else least + 15e-9
        levels[label] = replace(level, latency=max(least, usual), cycles=None)
    tlbs = {
        label: replace(
            tlb,
            miss=statistics.median(peer.caches.tlbs[label].miss for peer in known if peer.caches and label in peer.caches.tlbs),
            walk=statistics.median(peer.caches.tlbs[label].walk for peer in known if peer.caches and label in peer.caches.tlbs),
        )
        for label, tlb in caches.tlbs.items()
        if any(peer.caches and label in peer.caches.tlbs for peer in known)
    }
    paired = statistics.median((peer.caches.paired or 2.0) if peer.caches else 2.0 for peer in known)
    memory = replace(cpu.memory, latency=statistics.median(peer.memory.latency for peer in known))
    return replace(
        cpu, memory=memory, caches=replace(caches, levels=levels, tlbs={**caches.tlbs, **tlbs}, paired=min(2.0, paired))
    )


@functools.cache
def residuals(data: Path) -> list[Residual]:
    """Return interpolated residuals, and those of devices from others with its core, and of cores from others of its kind."""
    found, every = [], list(rows(data))
    for row in _odd(every):
        miss = Miss(row.name, beyond_first_level(part(Cpu, row.part), row.size, row.chains), row.seconds, row.group)
        found.append(of_miss(miss, "latency", "cpu", "known", unit=row.part, work=row.name, device=row.part))
    for row in every:
        for case, unit, others in left_out(row.part, CORES):
            cpu = as_others(row.part, others)
            miss = Miss(row.name, beyond_first_level(cpu, row.size, row.chains), row.seconds, row.group)
            found.append(of_miss(miss, "latency", "cpu", case, unit=unit, work=row.name, device=row.part))
    return found


def _why(miss: Miss) -> str:
    if "Apple" in miss.group:
        return "virtual machine; the system cache behind L2 is not modelled"
    if "Orin" in miss.group:
        return "no fitted size lies between L2 and L3"
    if "Altra" in miss.group:
        return "engineering sample: from 16 MiB, TLB misses cost more than the page-walk model predicts"
    return ""


def _odd(found: Sequence[Row]) -> list[Row]:
    """Return the held-out sizes of each device."""
    return held_out(sorted(found, key=lambda row: row.group), lambda row: row.size, lambda row: row.group)
