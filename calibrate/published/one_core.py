"""What one core moves to and from memory, alone: tinymembench's memcpy and memset of 32 MiB, and loads by likwid-bench.

A core reads so many bytes in a cycle of a long stream and writes so many, whichever its lines under way, its prefetchers and
its path to memory allow; copies take the longer of the two, and at least what the memory takes.  On x86 the C library's
routines write past the caches at this size; Arm's cores write full lines without reading them first; RISC-V does neither.

Two rows a device fit its two numbers, so that nothing of a device is held out: what is scored is each device from the others of
its core (its family, in bytes per cycle), and each core from other cores of its kind.
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
BYPASSED: Final = ("Atom",)  # kinds whose C library writes 32 MiB past the caches


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: what one core did, in bytes per second as the benchmark counts."""

    name: str
    source: str
    part: str
    reads: bool
    writes: bool
    rate: float

    def work(self) -> Work:
        """A billion bytes of it."""
        past = 1e9 if self.writes and CORES[self.part][1] in BYPASSED else 0.0
        return Work(reads=1e9 * self.reads, writes=1e9 * self.writes, in_place=past, cores=1)

    @property
    def seconds(self) -> float:
        """Of a billion bytes."""
        return 1e9 / self.rate


def rows(data: Path) -> Iterator[Row]:
    """Every measurement; runs on several cores of one device are one row each."""
    for each in table(data / "validation" / "02_membw.csv"):
        if "tinymembench" not in each["software"] or each["flag"]:
            continue
        words = f"{each['hardware']} {each['software']}"
        name = next(part for word, part in PARTS if word in words)
        copies = "memcpy" in each["pattern"]
        yield Row(f"{each['id']} {name} {each['pattern'].split()[0]}", "sbc-bench", name, copies, True, float(each["value"]))
    if (data / "oracles").is_dir():
        for loop in loops(data):
            if loop.level == "MEM" and loop.cores == 1 and loop.kernel == "load":
                name = SERVERS[loop.machine]
                yield Row(f"{loop.machine} load", "kerncraft", name, True, False, loop.rate)


def predicted(cpu: Cpu, row: Row) -> float:
    """Seconds of a billion bytes of a row."""
    return seconds(cpu, row.work())


def per_cycle(found: Sequence[Row]) -> dict[str, tuple[float, float | None]]:
    """(bytes read per cycle, bytes written) by part, as its rows give them; None where nothing was written."""
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
    """The part with the geometric means of the parts that are alike; None if they say nothing of it."""
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
    """Every device from the others of its core, and from other cores of its kind."""
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
    """Each device from the others of its core, and from other cores of its kind."""
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
