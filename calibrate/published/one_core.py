"""Memory bandwidth of one core: tinymembench's memcpy and memset of 32 MiB, and loads by likwid-bench.

A core reads and writes a fixed number of bytes per cycle of a long stream, whichever of lines in flight, prefetchers and memory
path limits it. A copy takes the longer of both times, and at least the memory's time. On x86, the C library's routines use
non-temporal stores at this size; Arm cores write full lines without reading them first; RISC-V does neither.

Two rows per device determine its two constants, so no row of a device can be held out. The scores predict each device from
other devices with its core (in bytes per cycle), and each core from other cores of its kind.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hwsim.devices import Cpu, Work
from hwsim.origins import Case
from published.cpu_bandwidth import SERVERS, loops, seconds
from published.parts import declared, part, table
from published.residual import Residual, left_out, of_miss
from published.score import Miss, Score, scored
from published.tinymembench import PARTS

CORES: Final[Mapping[str, Sequence[str]]] = declared("one_core")["cores"]
BYPASSED: Final = ("Atom",)  # kinds whose C library uses non-temporal stores for 32 MiB


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement of one core, in B/s as the benchmark counts."""

    name: str
    source: str
    part: str
    reads: bool
    writes: bool
    rate: float

    def work(self) -> Work:
        """Return 1 GB of this traffic."""
        past = 1e9 if self.writes and CORES[self.part][1] in BYPASSED else 0.0
        return Work(reads=1e9 * self.reads, writes=1e9 * self.writes, in_place=past, cores=1)

    @property
    def seconds(self) -> float:
        """Measured time of 1 GB, in seconds."""
        return 1e9 / self.rate


def rows(data: Path) -> Iterator[Row]:
    """Return every measurement; runs on several cores of one device are one row each."""
    for row in table(data / "validation" / "02_membw.csv"):
        if "tinymembench" not in row["software"] or row["flag"]:
            continue
        words = f"{row['hardware']} {row['software']}"
        name = next(part for word, part in PARTS if word in words)
        copies = "memcpy" in row["pattern"]
        yield Row(f"{row['id']} {name} {row['pattern'].split()[0]}", "sbc-bench", name, copies, True, float(row["value"]))
    if (data / "oracles").is_dir():
        for loop in loops(data):
            if loop.level == "MEM" and loop.cores == 1 and loop.kernel == "load":
                name = SERVERS[loop.machine]
                yield Row(f"{loop.machine} load", "kerncraft", name, True, False, loop.rate)


def predicted(cpu: Cpu, row: Row) -> float:
    """Return the predicted time of 1 GB, in seconds."""
    return seconds(cpu, row.work())


def per_cycle(found: Sequence[Row]) -> dict[str, tuple[float, float | None]]:
    """Return (bytes read, bytes written) per cycle by part; None if nothing was written."""
    numbers: dict[str, tuple[float, float | None]] = {}
    for name in dict.fromkeys(row.part for row in found):
        cpu = part(Cpu, name)
        clock = cpu.clock_of("scalar", 1)
        passes = 2.0 if cpu.caches is not None and cpu.caches.write_allocate and CORES[name][1] == "RISC-V" else 1.0
        read = [row.rate * passes for row in found if row.part == name and row.reads]
        written = [row.rate for row in found if row.part == name and not row.reads]
        numbers[name] = statistics.median(read) / clock, statistics.median(written) / clock if written else None
    return numbers


def as_others(name: str, found: Mapping[str, tuple[float, float | None]], alike: Sequence[str]) -> Cpu | None:
    """Return the part with geometric means of similar parts; None if they have no value."""
    others = [found[other] for other in alike]
    written = [store for _, store in others if store is not None]
    if found[name][1] is not None and not written:
        return None
    cpu = part(Cpu, name)
    if cpu.core is None:
        return None
    stored = statistics.geometric_mean(written) if found[name][1] is not None else None
    core = replace(cpu.core, streamed=statistics.geometric_mean(read for read, _ in others), stored=stored)
    return replace(cpu, core=core, core_bandwidth=None)


@functools.cache
def residuals(data: Path) -> list[Residual]:
    """Return residuals of every device from others with its core, and from other cores of its kind."""
    found = list(rows(data))
    numbers = per_cycle(found)
    made = {name: CORES[name] for name in numbers}
    out = []
    for row in found:
        work = f"one core {'copies' if row.reads and row.writes else 'reads' if row.reads else 'writes'}"
        for case, unit, others in left_out(row.part, made):
            if (cpu := as_others(row.part, numbers, others)) is not None:
                out.append(_residual(row, case, unit, work, predicted(cpu, row)))
    return out


def _residual(row: Row, case: Case, unit: str, work: str, time: float) -> Residual:
    return of_miss(
        Miss(row.name, time, row.seconds, f"{row.source} {row.part}"),
        "stream",
        "core",
        case,
        unit=unit,
        work=work,
        device=row.part,
    )


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of held-out devices and of held-out core types."""
    out = []
    for name, case, bound, reached in (
        (
            "memory bandwidth of one core, held-out device with the same core",
            "device",
            0.10,
            0.121,
        ),
        (
            "memory bandwidth of one core, held-out core type",
            "generation",
            0.30,
            0.36,
        ),
    ):
        misses = [residual.miss for residual in residuals(data) if (residual.case == "device") == (case == "device")]
        out.append(
            scored(
                name,
                misses,
                bound,
                "cross-validated",
                metric="median over devices of the mean error",
                reached=reached,
            )
        )
    return tuple(out)
