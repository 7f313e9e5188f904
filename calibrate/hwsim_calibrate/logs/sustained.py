"""Loops over large arrays, as STREAM and BabelStream time them, and the memory that they say.

A loop counts what its statement reads and writes. A store of a CPU fetches its line first (write allocate), which no tool counts:
1.5 times the bytes of a copy and 4/3 times the ones of a triad cross the bus. Add over copy tells: 1.125 with it, 1 without,
and up to 1.08 without where the bus turns around slowly. A dot product on a GPU also waits for its sum.

    bytes a second of reading = counted rate x (read + fetched + cost of a write x written) / (read + written)

Source: McCalpin, "Memory Bandwidth and Machine Balance", 1995, and the STREAM FAQ; Deakin et al., BabelStream, 2018.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, Final

from hwsim.demand import soft_min
from hwsim.devices import Cpu, Gpu
from hwsim.formats import percent
from hwsim.records import dataclass
from hwsim_calibrate.fit.writing import quantity
from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.log import Log
from hwsim_calibrate.logs.result import REPEATS, Number, Result, Row, part, scale_of

LOOPS: Final = {  # arrays read, arrays written
    "copy": (1, 1), "scale": (1, 1), "mul": (1, 1), "add": (2, 1), "triad": (2, 1), "dot": (2, 0), "nstream": (3, 1),
    "reading": (1, 0),
}  # fmt: skip
STREAMING: Final = 1.08  # add over copy up to which nothing is fetched: writes cost up to 1.6 times a read
FETCHING: Final = 1.1  # from which it is; between them it may be either
COPIED: Final = 1.2  # copy over scale from which the copy is the library's own, whose stores stream
PACED: Final = 2.0  # what threads on a part of the cores could read over what they did, up to which they set the pace
PRIVATE: Final = 4e6  # bytes of an array for each thread, below which caches of usual sizes hold it
REDUCED: Final = 0.95  # a dot product over what the other loops say of reading, below which its sum takes the rest of the time
PRINTED: Final = ("datasheet", "standard", "recalled")


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop that was timed.

    Args:
        rate: B/s as counted, the best of the repetitions; slower: the mean time over the best.
        threads: 0: not said.
        array: bytes of one array; 0: not said.
    """

    name: str
    rate: float
    slower: float
    threads: int
    array: float
    log: Log
    line: int

    @property
    def read(self) -> int:
        """Arrays read."""
        return LOOPS[self.name][0]

    @property
    def written(self) -> int:
        """Arrays written."""
        return LOOPS[self.name][1]

    def moved(self, fetched: bool, cost: float) -> float:
        """Bytes of reading that it takes, over the bytes that it counts."""
        return (self.read + self.written * fetched + cost * self.written) / (self.read + self.written)


def memory_of(
    tool: str, logs: Sequence[Log], read: Callable[[Log], Sequence[Loop]], hint: str, ask: Ask, rest: Sequence[str] = ()
) -> Result:
    """The memory of the part that was named, or one of its own, by the loops that `read` finds in every log.

    Args:
        rest: what else the logs measured.

    Raises:
        SpecError: a log has none.
    """
    loops: list[Loop] = []
    for log in logs:
        of_log = read(log)
        if not of_log:
            raise log.nothing(tool, hint)
        loops += of_log
    if ask.part is not None and ask.part.kind == "gpu":
        return _gpu(tool, loops, ask)
    loops, left = _without_copies(loops)
    left += rest
    if ask.part is not None:
        return _cpu(tool, loops, ask, left)
    most, sockets = max(loop.threads for loop in loops), ask.sockets or 1
    if most == 1:
        raise loops[0].log.wrong(loops[0].line, "one thread measures a core, not a memory", "name the cpu: --part")
    if any(0 < loop.array < PRIVATE * loop.threads for loop in loops):
        message = f"arrays of {quantity(loops[0].array, 'B')} among {most} threads: the caches may have held them"
        raise loops[0].log.wrong(loops[0].line, message, "name the cpu, whose caches tell: --part; or use larger arrays")
    loops = [loop for loop in loops if loop.threads == most]
    fetched, sentence, unsure = _fetches(loops)
    rate = _rate([loop.rate * loop.moved(fetched, 1.0) / sockets for loop in loops], loops, unsure)
    rows = [_row(loop, rate.value * sockets / loop.moved(fetched, 1.0)) for loop in loops]
    notes = f"{_runs(loops)}; {sentence}. For a cpu: memory: {{use: this file}}, numa: {{efficiency: 100 %}}; or fit with --part"
    return part(tool, "memory", f"{tool}: {_runs(loops)}", {"bandwidth": rate}, notes=notes, rows=rows, left=left)


def four(log: Log, line: int, cells: Sequence[str], tool: str, hint: str) -> tuple[float, float, float, float]:
    """The four numbers of a loop's line.

    Raises:
        SpecError: there are more or fewer, or one is none.
    """
    if len(cells) != 4:
        raise log.wrong(line, f"{len(cells)} numbers of a loop, not 4: cut off or mixed up", hint)
    first, second, third, fourth = (log.number(cell, f"a number of {tool}", line) for cell in cells)
    return first, second, third, fourth


def _without_copies(loops: Sequence[Loop]) -> tuple[list[Loop], list[str]]:
    """Loops without copies that go another way than the others, and a sentence about these."""
    kept, sentences = list(loops), []
    for threads in sorted({loop.threads for loop in loops}):
        copies, scales = (
            [loop for loop in loops if loop.threads == threads and loop.name in names] for names in (("copy",), ("scale", "mul"))
        )
        if copies and scales and (over := copies[0].rate / scales[0].rate) >= COPIED:
            kept = [loop for loop in kept if loop not in copies]
            sentences.append(f"copy is {over:.2f} times as fast as {scales[0].name}: the library's own copy streams its stores")
    return kept, sentences


def _cpu(tool: str, loops: Sequence[Loop], ask: Ask, left: Sequence[str]) -> Result:
    assert ask.part is not None
    cpu = ask.part.as_a(Cpu, tool)
    most, sockets = max(loop.threads for loop in loops), ask.sockets or 1
    every, single = [loop for loop in loops if loop.threads == most], [loop for loop in loops if loop.threads == 1]
    _refuse_cached(cpu, loops, sockets)
    fetched, sentence, unsure = _fetches(every)
    cost, own_cost = (cpu.numa.write_cost, cpu.numa.core_write_cost) if cpu.numa else (1.0, 1.0)
    knee = (cpu.numa.knee if cpu.numa else None) or math.inf
    peak, keys, rows = cpu.memory.bandwidth, dict[str, Any](), list[Row]()
    core = cpu.core_rate() or math.inf
    if single:
        rates = [loop.rate * loop.moved(fetched, own_cost) for loop in single]
        number = _rate(rates, single, unsure)
        core, keys["core_bandwidth"] = number.value, number
    cores, limit = cpu.cores * sockets, math.inf
    used = min(most, cores) / sockets if most else cpu.cores
    reached = max(loop.rate * loop.moved(fetched, own_cost) / sockets for loop in every)
    if 0 < most < max(cores / 2, min(cores, 2)) and not reached * PACED < used * core < math.inf:
        more = f"{most} of {cores} cores set the pace, and the memory gives more"
        if not single:
            raise every[0].log.wrong(every[0].line, more, "run it on all cores, or with one thread")
        left, every = [*left, more], []
    else:
        keys |= _sustained(ask, cpu, every[0], _rate(
            [_alone(loop.rate / sockets * loop.moved(fetched, cost), used * core * loop.moved(fetched, cost)
                    / loop.moved(fetched, own_cost), knee) for loop in every], every, unsure), peak,
        )  # fmt: skip
        limit = _limit(keys, peak)
    for loop in every:
        all_cores = used * core / loop.moved(fetched, own_cost)
        rows.append(_row(loop, soft_min(all_cores, limit / loop.moved(fetched, cost), knee) * sockets))
    for loop in single:
        rows.append(_row(loop, soft_min(core / loop.moved(fetched, own_cost), limit / loop.moved(fetched, cost), knee)))
    if single and cpu.core is not None and cpu.core.streamed is not None:
        keys["core"] = {"streamed": None}  # it says the same by the cycle, and would come first
    notes = f"{_runs(loops)}; {sentence}"
    return part(tool, "cpu", f"{tool}: {_runs(loops)}", keys, notes=notes, use=ask.part.use, rows=rows, left=left)


def _gpu(tool: str, loops: Sequence[Loop], ask: Ask) -> Result:
    assert ask.part is not None
    gpu = ask.part.as_a(Gpu, tool)
    peak = gpu.memory.bandwidth
    for loop in loops:
        if loop.rate > 1.02 * peak and gpu.memory.bandwidth:
            message = f"{quantity(loop.rate, 'B/s')} is more than the {quantity(peak, 'B/s')} that {ask.part.use} has"
            raise loop.log.wrong(loop.line, message, "another part, or arrays that its cache holds: use larger ones")
    copies = [loop for loop in loops if (loop.read, loop.written) == (1, 1)]
    dots = [loop for loop in loops if not loop.written]
    keys: dict[str, Any] = {}
    if copies:
        keys["copy"] = _share([loop.rate / peak for loop in copies], copies)
    sentences = [] if gpu.sustained.write < 1 else ["writes alone: no loop only writes"]
    alone = [loop.rate / peak for loop in dots]
    mixed = _reading(loops, peak, keys["copy"].value) if copies else []
    if alone and (not mixed or median(mixed) > 1 or median(alone) >= REDUCED * median(mixed)):
        keys["read"] = _share(alone, dots)
    elif mixed:
        keys["read"] = _share(mixed, loops)
        if alone:
            apart = math.log(median(mixed) / median(alone)) / 2
            keys["read"] = replace(keys["read"], repeats=math.hypot(apart, keys["read"].repeats or 0.0))
            sentences.append("the dot product: its sum takes a part of its time; reading is what add and triad say")
    if not keys:
        raise loops[0].log.wrong(loops[0].line, f"{tool} ran neither a copy nor a dot product", "run all its loops")
    fitted = replace(gpu.sustained, **{key: number.value for key, number in keys.items()})
    rows = [_row(loop, peak * fitted.part(loop.read, loop.written)) for loop in loops]
    return part(
        tool, "gpu", f"{tool}: {_runs(loops)}", {"sustained": keys}, use=ask.part.use, rows=rows, notes=_runs(loops),
        left=sentences,
    )  # fmt: skip


def _reading(loops: Sequence[Loop], peak: float, copy: float) -> list[float]:
    """The share of the peak that reading alone reaches, by loops that read more than they write: the rest is as a copy."""
    times = [((loop.read + loop.written) * peak / loop.rate - 2 * loop.written / copy, loop) for loop in loops if loop.written]
    return [(loop.read - loop.written) / time for time, loop in times if loop.read > loop.written and time > 0]


def _sustained(ask: Ask, cpu: Cpu, loop: Loop, rate: Number, peak: float) -> dict[str, Any]:
    """The keys that make a cpu's memory sustain this rate of reading."""
    assert ask.part is not None
    if rate.value <= peak:
        return {"numa": {"efficiency": replace(rate, value=rate.value / peak, unit="%")}}
    if str(cpu.sources.get("memory.bandwidth", "")).startswith(PRINTED) and rate.value > 1.02 * peak:
        message = f"{quantity(rate.value, 'B/s')} of a socket, but {ask.part.use} has {quantity(peak, 'B/s')}"
        hint = "how many sockets were busy? --sockets 2; or another part, or arrays that the caches hold"
        raise loop.log.wrong(loop.line, message, hint)
    return {"memory": {"bandwidth": rate}, "numa": {"efficiency": Number(1.0, "%", note="the bandwidth is the sustained one")}}


def _limit(keys: dict[str, Any], peak: float) -> float:
    found: Number = keys["memory"]["bandwidth"] if "memory" in keys else keys["numa"]["efficiency"]
    return found.value * (1.0 if "memory" in keys else peak)


def _fetches(loops: Sequence[Loop]) -> tuple[bool, str, float]:
    """(whether stores fetch their lines, in words, how unsure that makes the rate as a standard deviation of its logarithm)."""
    if not any(loop.written for loop in loops):
        return False, "reads alone", 0.0
    rates = {name: [loop.rate for loop in loops if loop.name in names] for name, names in (
        ("copy", ("copy", "scale", "mul")), ("add", ("add", "triad")))}  # fmt: skip
    if not rates["copy"] or not rates["add"]:
        return True, "stores are taken to fetch their lines (write allocate)", math.log(4 / 3) / 2
    over = math.exp(sum(map(math.log, rates["add"])) / len(rates["add"]) - sum(map(math.log, rates["copy"])) / len(rates["copy"]))
    if over >= FETCHING:
        return True, f"write allocate counted: add is {over:.2f} times as fast as copy", 0.0
    if over <= STREAMING:
        return False, f"no write allocate: add is {over:.2f} times as fast as copy, stores stream", 0.0
    sentence = f"write allocate counted, unsurely: add is {over:.2f} times as fast as copy (1.13 with, 1 without)"
    return True, sentence, math.log(4 / 3) / 2


def _rate(rates: Sequence[float], loops: Sequence[Loop], unsure: float) -> Number:
    number = scale_of([(rate, 1.0) for rate in rates], "B/s")
    slower = max(math.log(loop.slower) for loop in loops)
    return replace(number, repeats=math.hypot(REPEATS, slower, unsure))


def _share(shares: Sequence[float], loops: Sequence[Loop]) -> Number:
    return replace(_rate([min(share, 1.0) for share in shares], loops, 0.0), unit="%")


def _alone(rate: float, other: float, knee: float) -> float:
    """The limit that gives this rate together with another one, which rounds it off."""
    if math.isinf(knee) or math.isinf(other) or other < 1.2 * rate:
        return rate
    return float((rate**-knee - other**-knee) ** (-1.0 / knee))


def _refuse_cached(cpu: Cpu, loops: Sequence[Loop], sockets: int) -> None:
    """Refuse arrays that the last cache holds."""
    levels = list(cpu.caches.levels.values()) if cpu.caches else []
    held = max((level.size * math.ceil(cpu.cores / level.shared_by) for level in levels), default=0.0) * sockets
    for loop in loops:
        if 0 < loop.array < held:
            message = f"arrays of {quantity(loop.array, 'B')}, and the caches hold {quantity(held, 'B')}: no memory was measured"
            raise loop.log.wrong(loop.line, message, "STREAM's rule: arrays of four times the caches or more")


def _row(loop: Loop, rate: float) -> Row:
    threads = f", {loop.threads} thread{'s' if loop.threads > 1 else ''}" if loop.threads else ""
    return Row(f"{loop.name}{threads}", "B/s", loop.rate, rate)


def _runs(loops: Sequence[Loop]) -> str:
    threads = sorted({loop.threads for loop in loops if loop.threads})
    slower = max(loop.slower for loop in loops) - 1.0
    said = f"best of the repetitions, the mean up to {percent(slower, '.1f')} slower"
    said = "in the mean of a run" if loops[0].name == "reading" else said
    return f"{' and '.join(map(str, threads))} threads, {said}" if threads else said
