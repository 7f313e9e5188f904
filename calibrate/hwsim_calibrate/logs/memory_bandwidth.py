"""Fit of the memory bandwidth to the loops over large arrays of STREAM, BabelStream and sysbench.

The tools count the bytes that the statements read and write. On CPUs, a store first fetches its cache line (write allocate),
which is not counted: the memory transfers 1.5x the bytes of a copy and 4/3x the bytes of a triad. The ratio of add to copy
reveals write allocate: 1.125 with it, 1 without it, and up to 1.08 without it if read-write turnarounds are slow. A dot product
on a GPU also includes the time of its reduction.

    read bandwidth = counted rate x (read + fetched + cost of a write x written) / (read + written)

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
from hwsim_calibrate.fit.machine_file import quantity
from hwsim_calibrate.logs.log import Log
from hwsim_calibrate.logs.options import LogOptions
from hwsim_calibrate.logs.result import REPEATS, Number, Result, Row, part, scale_of

LOOPS: Final = {  # loop -> (arrays read, arrays written)
    "copy": (1, 1), "scale": (1, 1), "mul": (1, 1), "add": (2, 1), "triad": (2, 1), "dot": (2, 0), "nstream": (3, 1),
    "reading": (1, 0),
}  # fmt: skip
MAX_STREAMING: Final = 1.08  # add over copy up to which there is no write allocate; writes cost up to 1.6x a read
MIN_ALLOCATE: Final = 1.1  # add over copy from which there is write allocate; between both limits, it is unknown
LIBRARY_COPY: Final = 1.2  # copy over scale from which the copy is a library function with streaming stores
CORE_BOUND: Final = 2.0  # possible over measured rate of threads on some cores, up to which the cores limit the rate
MIN_PER_THREAD: Final = 4e6  # bytes of an array per thread, below which it fits in usual caches
MIN_DOT: Final = 0.95  # dot product over read bandwidth of the other loops, below which the reduction limits it
PRINTED: Final = ("datasheet", "standard", "recalled")


@dataclass(frozen=True, slots=True)
class Loop:
    """A timed loop.

    Args:
        name: name in `LOOPS`.
        rate: counted rate (B/s), the best of the repetitions.
        slower: mean time over best time.
        threads: number of threads; 0: unknown.
        array: size of one array (bytes); 0: unknown.
        log: the log.
        line: its line.
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
        """Number of arrays read."""
        return LOOPS[self.name][0]

    @property
    def written(self) -> int:
        """Number of arrays written."""
        return LOOPS[self.name][1]

    def moved(self, fetched: bool, cost: float) -> float:
        """Return the equivalent read bytes over the counted bytes."""
        return (self.read + self.written * fetched + cost * self.written) / (self.read + self.written)


Reader = Callable[[Log], Sequence[Loop]]


def fit_memory(
    tool: str, logs: Sequence[Log], read: Reader, hint: str, options: LogOptions, omitted: Sequence[str] = ()
) -> Result:
    """Fit the memory of a part, or a new memory.

    Args:
        tool: name of the tool.
        logs: the logs.
        read: function that returns the loops of a log.
        hint: description of a log.
        options: options of the import.
        omitted: omitted information.

    Raises:
        SpecError: A log has no loops, or the loops do not measure the memory.
    """
    loops: list[Loop] = []
    for log in logs:
        log_loops = read(log)
        if not log_loops:
            raise log.nothing(tool, hint)
        loops += log_loops
    if options.part is not None and options.part.kind == "gpu":
        return _gpu(tool, loops, options)
    loops, left = _without_copies(loops)
    left += omitted
    if options.part is not None:
        return _cpu(tool, loops, options, left)
    thread_count, sockets = max(loop.threads for loop in loops), options.sockets or 1
    if thread_count == 1:
        raise loops[0].log.wrong(loops[0].line, "one thread measures a core, not the memory", "name the CPU: --part NAME")
    if any(0 < loop.array < MIN_PER_THREAD * loop.threads for loop in loops):
        message = f"arrays of {quantity(loops[0].array, 'B')} for {thread_count} threads may fit in the caches"
        raise loops[0].log.wrong(loops[0].line, message, "name the CPU with --part, for its cache sizes, or use larger arrays")
    loops = [loop for loop in loops if loop.threads == thread_count]
    fetched, sentence, uncertainty = _write_allocate(loops)
    rate = _rate([loop.rate * loop.moved(fetched, 1.0) / sockets for loop in loops], loops, uncertainty)
    rows = [_row(loop, rate.value * sockets / loop.moved(fetched, 1.0)) for loop in loops]
    notes = f"{_runs(loops)}; {sentence}. In a CPU: memory: {{use: this file}}, numa: {{efficiency: 100 %}}; or use --part"
    return part(tool, "memory", f"{tool}: {_runs(loops)}", {"bandwidth": rate}, notes=notes, rows=rows, left=left)


def four_numbers(log: Log, line: int, cells: Sequence[str], tool: str, hint: str) -> tuple[float, float, float, float]:
    """Return the four numbers of a loop's line.

    Raises:
        SpecError: The line does not have exactly four numbers.
    """
    if len(cells) != 4:
        raise log.wrong(line, f"the row has {len(cells)} numbers: expected 4", hint)
    first, second, third, fourth = (log.number(cell, f"a number of {tool}", line) for cell in cells)
    return first, second, third, fourth


def _without_copies(loops: Sequence[Loop]) -> tuple[list[Loop], list[str]]:
    """Remove copies by a library function, and return a sentence about them."""
    kept, sentences = list(loops), []
    for threads in sorted({loop.threads for loop in loops}):
        copies, scales = (
            [loop for loop in loops if loop.threads == threads and loop.name in names] for names in (("copy",), ("scale", "mul"))
        )
        if copies and scales and (over := copies[0].rate / scales[0].rate) >= LIBRARY_COPY:
            kept = [loop for loop in kept if loop not in copies]
            sentences.append(f"copy, a library function with streaming stores: {over:.2f}x as fast as {scales[0].name}")
    return kept, sentences


def _cpu(tool: str, loops: Sequence[Loop], options: LogOptions, left: Sequence[str]) -> Result:
    assert options.part is not None
    cpu = options.part.as_a(Cpu, tool)
    thread_count, sockets = max(loop.threads for loop in loops), options.sockets or 1
    every, single = [loop for loop in loops if loop.threads == thread_count], [loop for loop in loops if loop.threads == 1]
    _refuse_cached(cpu, loops, sockets)
    fetched, sentence, uncertainty = _write_allocate(every)
    cost, own_cost = (cpu.numa.write_cost, cpu.numa.core_write_cost) if cpu.numa else (1.0, 1.0)
    knee = (cpu.numa.knee if cpu.numa else None) or math.inf
    peak, keys, rows = cpu.memory.bandwidth, dict[str, Any](), list[Row]()
    core = cpu.core_rate() or math.inf
    if single:
        rates = [loop.rate * loop.moved(fetched, own_cost) for loop in single]
        number = _rate(rates, single, uncertainty)
        core, keys["core_bandwidth"] = number.value, number
    cores, limit = cpu.cores * sockets, math.inf
    used = min(thread_count, cores) / sockets if thread_count else cpu.cores
    reached = max(loop.rate * loop.moved(fetched, own_cost) / sockets for loop in every)
    if 0 < thread_count < max(cores / 2, min(cores, 2)) and not reached * CORE_BOUND < used * core < math.inf:
        reason = f"{thread_count} of {cores} cores cannot saturate the memory"
        if not single:
            raise every[0].log.wrong(every[0].line, reason, "use all cores, or one thread for `core_bandwidth`")
        left, every = [*left, f"the memory bandwidth: {reason}"], []
    else:
        keys |= _sustained(options, cpu, every[0], _rate(
            [_remove_knee(loop.rate / sockets * loop.moved(fetched, cost), used * core * loop.moved(fetched, cost)
                    / loop.moved(fetched, own_cost), knee) for loop in every], every, uncertainty), peak,
        )  # fmt: skip
        limit = _limit(keys, peak)
    for loop in every:
        all_cores = used * core / loop.moved(fetched, own_cost)
        rows.append(_row(loop, soft_min(all_cores, limit / loop.moved(fetched, cost), knee) * sockets))
    for loop in single:
        rows.append(_row(loop, soft_min(core / loop.moved(fetched, own_cost), limit / loop.moved(fetched, cost), knee)))
    if single and cpu.core is not None and cpu.core.streamed is not None:
        keys["core"] = {"streamed": None}  # has the same meaning per cycle, and would take precedence
    notes = f"{_runs(loops)}; {sentence}"
    return part(tool, "cpu", f"{tool}: {_runs(loops)}", keys, notes=notes, use=options.part.use, rows=rows, left=left)


def _gpu(tool: str, loops: Sequence[Loop], options: LogOptions) -> Result:
    assert options.part is not None
    gpu = options.part.as_a(Gpu, tool)
    peak = gpu.memory.bandwidth
    for loop in loops:
        if loop.rate > 1.02 * peak and gpu.memory.bandwidth:
            message = f"{quantity(loop.rate, 'B/s')} exceeds the {quantity(peak, 'B/s')} of {options.part.use}"
            raise loop.log.wrong(loop.line, message, "use another --part, or larger arrays if they fit in its cache")
    copies = [loop for loop in loops if (loop.read, loop.written) == (1, 1)]
    dots = [loop for loop in loops if not loop.written]
    keys: dict[str, Any] = {}
    if copies:
        keys["copy"] = _share([loop.rate / peak for loop in copies], copies)
    sentences = [] if gpu.sustained.write < 1 else ["the write bandwidth, because no loop only writes"]
    alone = [loop.rate / peak for loop in dots]
    mixed = _reading(loops, peak, keys["copy"].value) if copies else []
    if alone and (not mixed or median(mixed) > 1 or median(alone) >= MIN_DOT * median(mixed)):
        keys["read"] = _share(alone, dots)
    elif mixed:
        keys["read"] = _share(mixed, loops)
        if alone:
            difference = math.log(median(mixed) / median(alone)) / 2
            keys["read"] = replace(keys["read"], repeats=math.hypot(difference, keys["read"].repeats or 0.0))
            sentences.append("the dot product, which its reduction slows down; the read bandwidth is from add and triad")
    if not keys:
        raise loops[0].log.wrong(loops[0].line, f"the log of {tool} has neither a copy nor a dot product", "run all loops")
    fitted = replace(gpu.sustained, **{key: number.value for key, number in keys.items()})
    rows = [_row(loop, peak * fitted.part(loop.read, loop.written)) for loop in loops]
    return part(
        tool, "gpu", f"{tool}: {_runs(loops)}", {"sustained": keys}, use=options.part.use, rows=rows, notes=_runs(loops),
        left=sentences,
    )  # fmt: skip


def _reading(loops: Sequence[Loop], peak: float, copy: float) -> list[float]:
    """Return the read bandwidth over the peak, from loops that read more than they write, without their copy part."""
    times = [((loop.read + loop.written) * peak / loop.rate - 2 * loop.written / copy, loop) for loop in loops if loop.written]
    return [(loop.read - loop.written) / time for time, loop in times if loop.read > loop.written and time > 0]


def _sustained(options: LogOptions, cpu: Cpu, loop: Loop, rate: Number, peak: float) -> dict[str, Any]:
    """Return the keys for a sustained read bandwidth of a CPU's memory."""
    assert options.part is not None
    if rate.value <= peak:
        return {"numa": {"efficiency": replace(rate, value=rate.value / peak, unit="%")}}
    if str(cpu.sources.get("memory.bandwidth", "")).startswith(PRINTED) and rate.value > 1.02 * peak:
        message = f"{quantity(rate.value, 'B/s')} per socket, but {options.part.use} has {quantity(peak, 'B/s')}"
        hint = "for two busy sockets, use --sockets 2; else use another --part, or larger arrays"
        raise loop.log.wrong(loop.line, message, hint)
    return {"memory": {"bandwidth": rate}, "numa": {"efficiency": Number(1.0, "%", note="relative to the sustained bandwidth")}}


def _limit(keys: dict[str, Any], peak: float) -> float:
    found: Number = keys["memory"]["bandwidth"] if "memory" in keys else keys["numa"]["efficiency"]
    return found.value * (1.0 if "memory" in keys else peak)


def _write_allocate(loops: Sequence[Loop]) -> tuple[bool, str, float]:
    """Return (whether stores fetch their lines, a sentence, the resulting standard deviation of the rate's logarithm)."""
    if not any(loop.written for loop in loops):
        return False, "reads only", 0.0
    rates = {name: [loop.rate for loop in loops if loop.name in names] for name, names in (
        ("copy", ("copy", "scale", "mul")), ("add", ("add", "triad")))}  # fmt: skip
    if not rates["copy"] or not rates["add"]:
        return True, "write allocate is assumed", math.log(4 / 3) / 2
    over = math.exp(sum(map(math.log, rates["add"])) / len(rates["add"]) - sum(map(math.log, rates["copy"])) / len(rates["copy"]))
    if over >= MIN_ALLOCATE:
        return True, f"with write allocate: add is {over:.2f}x as fast as copy", 0.0
    if over <= MAX_STREAMING:
        return False, f"streaming stores: add is {over:.2f}x as fast as copy", 0.0
    sentence = f"write allocate is assumed, but uncertain: add is {over:.2f}x as fast as copy (1.13x with, 1x without)"
    return True, sentence, math.log(4 / 3) / 2


def _rate(rates: Sequence[float], loops: Sequence[Loop], uncertainty: float) -> Number:
    number = scale_of([(rate, 1.0) for rate in rates], "B/s")
    slower = max(math.log(loop.slower) for loop in loops)
    return replace(number, repeats=math.hypot(REPEATS, slower, uncertainty))


def _share(shares: Sequence[float], loops: Sequence[Loop]) -> Number:
    return replace(_rate([min(share, 1.0) for share in shares], loops, 0.0), unit="%")


def _remove_knee(rate: float, other: float, knee: float) -> float:
    """Return the limit that results in a rate when it is combined with another limit by a soft minimum."""
    if math.isinf(knee) or math.isinf(other) or other < 1.2 * rate:
        return rate
    return float((rate**-knee - other**-knee) ** (-1.0 / knee))


def _refuse_cached(cpu: Cpu, loops: Sequence[Loop], sockets: int) -> None:
    """Raise SpecError if the arrays fit in the caches."""
    levels = list(cpu.caches.levels.values()) if cpu.caches else []
    capacity = max((level.size * math.ceil(cpu.cores / level.shared_by) for level in levels), default=0.0) * sockets
    for loop in loops:
        if 0 < loop.array < capacity:
            message = f"arrays of {quantity(loop.array, 'B')} fit in the caches of {quantity(capacity, 'B')}"
            raise loop.log.wrong(loop.line, message, "use arrays of at least 4x the cache size (STREAM's rule)")


def _row(loop: Loop, rate: float) -> Row:
    threads = f", {loop.threads} thread{'s' if loop.threads > 1 else ''}" if loop.threads else ""
    return Row(f"{loop.name}{threads}", "B/s", loop.rate, rate)


def _runs(loops: Sequence[Loop]) -> str:
    threads = sorted({loop.threads for loop in loops if loop.threads})
    slower = max(loop.slower for loop in loops) - 1.0
    statistic = f"best of the repetitions, the mean is up to {percent(slower, '.1f')} slower"
    statistic = "mean of a run" if loops[0].name == "reading" else statistic
    return f"{' and '.join(map(str, threads))} threads, {statistic}" if threads else statistic
