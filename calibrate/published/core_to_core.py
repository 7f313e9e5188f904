"""Core-to-core latency: one-way latency of a compare-and-swap ping-pong over all pairs of hardware threads.

For each machine, the minimum, the 10th percentile, the median, the 90th percentile and the maximum over the pairs are
published. There are two scores: the machine's own part, fitted to the minimum, median and maximum and evaluated at the
percentiles; and each machine predicted from the other machines of its family, given only its number of cores, clusters, threads
and sockets.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hwsim.devices import Cpu
from hwsim.devices.cores import Coherence
from hwsim.origins import Case
from published.parts import declared, part, table
from published.residual import Residual, misses, of_miss
from published.score import Half, Miss, Score, scored

MACHINES: Final[tuple[tuple[str, str, int, str], ...]] = tuple(map(tuple, declared("core_to_core")["machines"]))
COMPLEXES: Final = ("ryzen", "epyc")  # machines with the same kind of core complex
PLACES: Final[Mapping[str, float]] = {"min": 0.0, "p10": 0.1, "median": 0.5, "p90": 0.9, "max": 1.0}
FITTED: Final = ("min", "median", "max")
SPREAD: Final = 0.04  # standard deviation over mean, for pairs of one kind, over the 22 machines


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine and its measured latencies, by position among its pairs."""

    hardware: str
    part: str
    sockets: int
    family: str
    seconds: Mapping[str, float]

    @property
    def threads(self) -> int:
        """Return the hardware threads per core that were measured."""
        cpu = part(Cpu, self.part)
        return cpu.core.threads if cpu.core else 1

    def predicted(self, place: str, coherence: Coherence) -> float:
        """Return the latency at a position among the pairs."""
        cpu = part(Cpu, self.part)
        return quantile(coherence.pairs(cpu.cores, self.sockets, self.threads), PLACES[place], coherence.spread)


def machines(data: Path) -> list[Machine]:
    """Return every machine of the data."""
    found: dict[str, dict[str, float]] = {}
    for row in table(data / "validation" / "06_cpulat.csv"):
        if row["kind"].startswith("core-to-core") and not row["flag"]:
            place = row["kind"].removeprefix("core-to-core one-way ").partition(" ")[0]
            found.setdefault(row["hardware"], {})[place] = float(row["value"])
    out = []
    for hardware, seconds in found.items():
        _, name, sockets, family = next(machine for machine in MACHINES if machine[0] in hardware)
        out.append(Machine(hardware, name, sockets, family, seconds))
    return out


def quantile(pairs: Sequence[tuple[float, float]], place: float, spread: float) -> float:
    """Return a quantile of the latency; each kind of pairs is normally distributed around its mean.

    >>> [round(quantile(((0.2, 10.0), (0.8, 100.0)), place, 0.0)) for place in (0.0, 0.1, 0.5, 1.0)]
    [10, 10, 100, 100]
    """
    reach = 2.0 * spread
    place = min(max(place, 0.002), 0.998)
    low, high = (1 - 2 * reach) * min(mean for _, mean in pairs), (1 + 2 * reach) * max(mean for _, mean in pairs)
    for _ in range(60):
        middle = (low + high) / 2
        below = math.fsum(part * _normal(middle, mean, spread * mean) for part, mean in pairs)
        low, high = (middle, high) if below < place else (low, middle)
    return (low + high) / 2


def _normal(value: float, mean: float, deviation: float) -> float:
    if deviation <= 0:
        return float(value >= mean)
    return 0.5 * (1.0 + math.erf((value - mean) / (deviation * math.sqrt(2.0))))


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of held-out percentiles, and of held-out machines."""
    found = residuals(data)
    return (
        _score("core-to-core latency, percentiles over pairs of threads", misses(found, "known"), "interpolated"),
        _score("core-to-core latency, held-out machine of a CPU family", misses(found, "device"), "cross-validated"),
    )


def _score(name: str, rows: Sequence[Miss], half: Half) -> Score:
    return scored(name, rows, 0.20, half)


def residuals(data: Path) -> list[Residual]:
    """Return residuals of held-out percentiles, and of machines predicted from their family."""
    every, found = machines(data), []
    for cpu in every:
        own, others = part(Cpu, cpu.part).coherence, from_family(cpu, every)
        for place, seconds in cpu.seconds.items():
            ways: list[tuple[Case, Coherence]] = [("device", others)]
            if own is not None and place not in FITTED:
                ways.append(("known", own))
            for case, coherence in ways:
                miss = Miss(place, cpu.predicted(place, coherence), seconds, cpu.hardware)
                found.append(of_miss(miss, "latency", "core", case, unit=cpu.part, work=f"a line, {place}", device=cpu.part))
    return found


# ---- from other machines ----


def kinds(each: Machine) -> tuple[int, int, int, int]:
    """Return (cores of a socket, cores of a cluster, threads, sockets)."""
    cpu = part(Cpu, each.part)
    cluster = cpu.coherence.cluster_cores if cpu.coherence and cpu.coherence.cluster_cores else cpu.cores
    return cpu.cores, cluster, each.threads, each.sockets


def kind_at(each: Machine, place: str) -> str:
    """Return the kind of pairs at a position, nearest first."""
    cores, cluster, threads, sockets = kinds(each)
    nearest = {"threads": 1.0, "cluster": 2.0, "across": 3.0, "sockets": 4.0}
    shares = Coherence(cluster_cores=cluster, **nearest).pairs(cores, sockets, threads)
    below, found = 0.0, shares[-1][1]
    for share, mark in shares:
        below += share
        if PLACES[place] <= below + 1e-9:
            found = mark
            break
    return next(kind for kind, mark in nearest.items() if math.isclose(mark, found))


def latencies(each: Machine, places: Collection[str]) -> dict[str, float]:
    """Return latencies by kind of pair, for the kinds at the published positions; extremes are moved to the mean."""
    ends = {"min": 1.0 - 2 * SPREAD, "max": 1.0 + 2 * SPREAD}
    found: dict[str, list[float]] = {}
    for place in sorted(places, key=lambda place: place in ends):
        kind = kind_at(each, place)
        if kind not in found or place not in ends:
            found.setdefault(kind, []).append(each.seconds[place] / ends.get(place, 1.0))
    return {kind: statistics.fmean(values) for kind, values in found.items()}


def from_family(each: Machine, every: Sequence[Machine]) -> Coherence:
    """Return latencies from the other machines of the family: medians, in cycles for clock-bound latencies."""

    def of(kind: str) -> float | None:
        """Return the latency of this kind of pairs; None if no other machine has it."""
        alike = (each.family, *COMPLEXES) if each.family in COMPLEXES and kind == "cluster" else (each.family,)
        others = [other for other in every if other.family in alike and other.part != each.part]
        found = [(latencies(other, PLACES), _pace(other, kind)) for other in others]
        values = [seconds[kind] * pace for seconds, pace in found if kind in seconds]
        return statistics.median(values) / _pace(each, kind) if values else None

    cores, cluster, _, _ = kinds(each)
    return Coherence(
        cluster=of("cluster") or of("across") or 40e-9,
        cluster_cores=cluster if cluster < cores else None,
        across=of("across"),
        sockets=of("sockets"),
        threads=of("threads"),
        spread=SPREAD,
    )


def _pace(each: Machine, kind: str) -> float:
    """Return the frequency that scales a latency (a mesh; a core complex, at the boost clock of one core), or 1."""
    cpu = part(Cpu, each.part)
    if each.family == "mesh":
        return cpu.clock or 1.0
    return cpu.clock_of("scalar", 1) if each.family in COMPLEXES and kind == "cluster" else 1.0
