"""Bandwidth of CPUs: by number of cores (likwid-bench in kerncraft's machine files), and BabelStream on servers.

By number of cores: loads, copies, updates, daxpy and triads on four servers; odd numbers of cores are used for fitting.
BabelStream: all cores of one or two sockets. Intel's and Fujitsu's compilers use non-temporal stores; other compilers read each
line before writing it. Every second row is used for fitting.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hwsim.devices import Cpu, Sockets, Work
from hwsim.devices.cores import Numa
from hwsim.origins import Case
from published.parts import declared, part, table
from published.residual import Residual, of_miss
from published.score import Half, Miss, Score, scored
from published.search import descend

NAME: Final = "it"
SERVERS: Final[Mapping[str, str]] = declared("cpu_bandwidth")["servers"]
LOOPS: Final[Mapping[str, tuple[float, float, float]]] = {  # streams read, written, and written in place
    "load": (1, 0, 0), "copy": (1, 1, 0), "update": (1, 1, 1), "daxpy": (2, 1, 1), "triad": (3, 1, 0),
}  # fmt: skip
KERNELS: Final[Mapping[str, tuple[float, float]]] = {"copy": (1, 1), "mul": (1, 1), "add": (2, 1), "triad": (2, 1), "dot": (2, 0)}
# L3 of the Skylake-SP line is a victim cache of L2. The
# published working sets lie in both levels, so these rows cannot be used for either.
MIXED: Final = ("SkylakeSP_Gold-6148", "CascadelakeSP_Gold-6248_SNC")
STREAMERS: Final[tuple[tuple[str, str, int], ...]] = tuple(map(tuple, declared("cpu_bandwidth")["streamers"]))
ARRAYS: Final = 3  # B of the arrays that all BabelStream loops use repeatedly
BYPASSING: Final = ("_intel-", "fujitsu-")  # compilers that use non-temporal stores for these loops


def seconds(model: Cpu | Sockets, work: Work) -> float:
    """Return the time of an op on an idle machine, in seconds."""
    return model.compute(NAME, work).demand.alone({capacity.name: capacity.rate for capacity in model.capacities(NAME)})


# ---- by number of cores ----


@dataclass(frozen=True, slots=True)
class Loop:
    """One published point: a number of cores, each with its own working set."""

    machine: str
    level: str
    kernel: str
    cores: int
    rate: float

    def work(self, cpu: Cpu) -> Work:
        """Return the traffic of each core: 1 GB."""
        read, written, in_place = (count * 1e9 * self.cores for count in LOOPS[self.kernel])
        return Work(reads=read, writes=written, in_place=in_place, cores=self.cores, working_set=self._working_set(cpu))

    def _working_set(self, cpu: Cpu) -> float | None:
        if self.level == "MEM" or cpu.caches is None:
            return None
        level = cpu.caches.levels[self.level]
        sharing = math.ceil(self.cores / level.shared_by)
        return 0.5 * level.size * (sharing if level.shared_by > 1 else self.cores)

    def predicted(self, cpu: Cpu) -> float:
        """Return the bandwidth as the benchmark counts it, in B/s: bytes read and written by the loop."""
        work = self.work(cpu)
        return (work.reads + work.writes) / seconds(cpu, work)


def loops(data: Path) -> Iterator[Loop]:
    """Return the published points with one thread per core."""
    for row in table(data / "oracles" / "kerncraft_measured_bw.csv"):
        if row["threads_per_core"] == "1" and row["kernel"] in LOOPS and not (row["level"] == "L3" and row["machine"] in MIXED):
            yield Loop(row["machine"], row["level"], row["kernel"], int(row["cores"]), float(row["GBps"]) * 1e9)


def _against_cores(data: Path) -> Iterator[Score]:
    found = [loop for loop in loops(data) if loop.cores % 2 == 0]
    for name, levels in (
        ("memory bandwidth by number of cores, four servers", ("MEM",)),
        ("L2 and L3 bandwidth by number of cores, four servers", ("L2", "L3")),
    ):
        misses = [
            Miss(
                f"{loop.kernel} in {loop.level}, {loop.cores} cores",
                loop.predicted(part(Cpu, SERVERS[loop.machine])),
                loop.rate,
                loop.machine,
            )
            for loop in found
            if loop.level in levels
        ]
        yield scored(
            name,
            misses,
            0.06,
            "interpolated",
            metric="mean relative error",
            why=lambda miss: (
                "at two thirds of a NUMA domain's cores, loads saturate more sharply than other kernels"
                if "MEM" in miss.row
                else ""
            ),
        )


# ---- BabelStream ----


def babelstream_part(hardware: str) -> tuple[str, int] | None:
    """Return (part, sockets) of a row's hardware; None if it is not a CPU of the library."""
    return next(((name, sockets) for word, name, sockets in STREAMERS if word in hardware), None)


def babelstream(row: Mapping[str, str], models: Mapping[str, Cpu] | None = None) -> float | None:
    """Return the predicted bandwidth of a BabelStream row, in B/s; None if it is not a CPU of the library."""
    found = babelstream_part(row["hardware"])
    kernel = row["pattern"].lower()
    if found is None or kernel not in KERNELS:
        return None
    name, sockets = found
    cpu = (models or {}).get(name) or part(Cpu, name)
    model: Cpu | Sockets = cpu if sockets == 1 else Sockets(cpu, tuple(f"cpu{index}" for index in range(sockets)))
    array = float(row["working_set_bytes"])
    read, written = (count * array for count in KERNELS[kernel])
    past = written if _bypasses(row["software"]) else 0.0
    work = Work(reads=read, writes=written, in_place=past, dtype="fp64", working_set=ARRAYS * array)
    return (read + written) / seconds(model, work)


def _bypasses(software: str) -> bool:
    """Return whether the compiler uses non-temporal stores, so that lines are not read before they are written."""
    return any(word in software for word in BYPASSING)


def group(row: Mapping[str, str]) -> str:
    """Return source x device, named as in the other bandwidth topics."""
    return "/".join(row["source"].partition("@")[0].split("/")[:3]) + " " + row["hardware"]


def stream_rows(data: Path) -> list[dict[str, str]]:
    """Return the unflagged BabelStream rows of CPUs."""
    found = table(data / "validation" / "02_membw.csv")
    return [row for row in found if "BabelStream" in row["software"] and not row["flag"] and babelstream_part(row["hardware"])]


def _fitted_half(row: Mapping[str, str]) -> bool:
    """Return whether a row was used for fitting (every second one)."""
    return int(row["id"].rpartition("-")[2]) % 2 == 0


def unmeasured(name: str, efficiency: float = 1.0, write_cost: float = 1.0) -> Cpu:
    """Return the part as its datasheet describes it, with these memory constants and typical caches."""
    cpu = part(Cpu, name)
    numa = Numa(domains=cpu.numa.domains if cpu.numa else 1, efficiency=efficiency, write_cost=write_cost)
    caches = cpu.caches
    if caches is not None:
        caches = replace(caches, levels={key: replace(level, full=0.8, none=1.3) for key, level in caches.levels.items()})
    return replace(cpu, numa=numa, caches=caches)


def _part_of(row: Mapping[str, str]) -> str:
    return (babelstream_part(row["hardware"]) or ("", 0))[0]


def pooled(found: Sequence[Mapping[str, str]], without: str = "") -> tuple[float, float]:
    """Return (efficiency, write_cost) that fit every third row of all parts but one best, with equal weight per part.

    Medians of the parts' own constants fit worse, because the two constants of a part are correlated.
    """
    rows = [row for row in found if _part_of(row) != without][::3]
    count = Counter(map(_part_of, rows))

    def error(at: Sequence[float]) -> float:
        if not 0.3 <= at[0] <= 1 or at[1] < 1:
            return math.inf
        models = {name: unmeasured(name, *at) for name in count}
        off = ((row, (babelstream(row, models) or 0.0) / float(row["value"])) for row in rows)
        return math.fsum(abs(math.log(ratio)) / count[_part_of(row)] for row, ratio in off)

    efficiency, write_cost = descend(error, [0.8, 1.2], rounds=15, finest=1e-2)
    return efficiency, write_cost


@functools.cache
def left_out(data: Path) -> dict[str, Cpu]:
    """Return every BabelStream CPU as described by its datasheet and the rows of the other CPUs."""
    found = stream_rows(data)
    return {name: unmeasured(name, *pooled(found, name)) for _, name, _ in STREAMERS}


def stream_misses(data: Path) -> tuple[list[Miss], list[Miss]]:
    """Return held-out BabelStream rows with the part's own constants, and all rows with the CPU held out."""
    found = stream_rows(data)
    models = left_out(data)

    def miss(row: Mapping[str, str], known: Mapping[str, Cpu] | None) -> Miss:
        return Miss(f"{row['pattern']} {row['software']}", babelstream(row, known) or 0.0, float(row["value"]), group(row))

    return [miss(row, None) for row in found if not _fitted_half(row)], [miss(row, models) for row in found]


def _streams(data: Path) -> Iterator[Score]:
    held, unseen = stream_misses(data)
    cases: tuple[tuple[str, list[Miss], float, Half, float | None], ...] = (
        ("BabelStream on CPUs", held, 0.06, "interpolated", None),
        ("BabelStream on CPUs, held-out CPU, from its datasheet", unseen, 0.11, "cross-validated", 0.131),
    )
    for name, misses, bound, half, reached in cases:
        yield scored(
            name,
            misses,
            bound,
            half,
            reached=reached,
        )


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores by number of cores, and of BabelStream."""
    return *_against_cores(data), *_streams(data)


def residuals(data: Path) -> list[Residual]:
    """Return residuals of even numbers of cores, of held-out BabelStream rows, and of held-out CPUs."""
    found = []
    for loop in loops(data):
        if loop.cores % 2 == 0:
            name = SERVERS[loop.machine]
            work = f"{loop.kernel} in {loop.level} on {loop.cores} cores"
            miss = Miss(work, loop.predicted(part(Cpu, name)), loop.rate, loop.machine)
            topic, regime = ("stream", "cpu") if loop.level == "MEM" else ("cache", "cpu")
            found.append(of_miss(miss, topic, regime, "known", unit=name, work=work, device=name, rate=True))
    models = left_out(data)
    for row in stream_rows(data):
        name = (babelstream_part(row["hardware"]) or ("", 0))[0]
        for case, known in (("known", None), ("device", models)):
            if case == "device" or not _fitted_half(row):
                miss = Miss(f"{row['id']} {row['pattern']}", babelstream(row, known) or 0.0, float(row["value"]), group(row))
                work = f"{row['pattern']} of a long array on all cores"
                how: Case = "known" if case == "known" else "device"
                found.append(of_miss(miss, "stream", "cpu", how, unit=name, work=work, device=name, rate=True))
    return found
