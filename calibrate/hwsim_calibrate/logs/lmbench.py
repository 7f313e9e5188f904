"""lmbench's lat_mem_rd: how long a read waits for the one before, by how much memory they go around in.

    "stride=128
    0.00049 1.437                 MiB (some builds: 1e6 B), ns

A level shows where the level before it holds little and it holds all: from four times the size before it to half of its own. If
the sizes are not known, levels are plateaus: pieces of equal latency (dynamic programming, Bayes' information criterion).

Source: McVoy and Staelin, "lmbench: Portable Tools for Performance Analysis", USENIX 1996.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import Any, Final

from hwsim.devices import Cpu
from hwsim_calibrate.fit.writing import quantity
from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.log import Log
from hwsim_calibrate.logs.result import Number, Result, Row, number_of, part

LINE: Final = 64  # bytes: a shorter stride reads some lines twice
MOST: Final = 6  # plateaus
LEAST: Final = 3  # rows of a plateau
NOISE: Final = 0.03  # relative
STEP: Final = 1.25  # latency of a plateau over the one before
FOLLOWED: Final = 0.25  # standard deviation of a latency that a prefetcher may have hidden
_BLOCK: Final = re.compile(r'^\s*"?stride=(\d{1,9})\b')
_ROW: Final = re.compile(r"^\s*([\d.]+)\s+([\d.]+)\s*$")
_HINT: Final = 'it has a line `"stride=128` and lines of `size latency`; lat_mem_rd writes them to stderr'
Points = list[tuple[float, float]]


def fit(logs: Sequence[Log], ask: Ask) -> Result:
    """Latencies of the levels of a cpu's caches, and of its memory."""
    blocks: dict[int, Points] = {}
    for log in logs:
        for stride, points in _blocks(log).items():
            blocks.setdefault(stride, []).extend(points)
    if ask.part is None:
        raise logs[0].wrong(0, "lat_mem_rd says nothing of a cpu's arithmetic", "name the cpu that its latencies go into: --part")
    cpu = ask.part.as_a(Cpu, "lat_mem_rd")
    stride = max(blocks)
    if stride < LINE:
        raise logs[0].wrong(
            0, f"a stride of {stride} B reads a line of {LINE} B several times", f"run it with a stride of {2 * LINE}"
        )
    points = sorted(blocks[stride])
    stated = {name: level.size for name, level in cpu.caches.levels.items()} if cpu.caches else {}
    seen = {} if stated else _sizes(points)
    sizes = stated or {name: number.value for name, number in seen.items()}
    levels: dict[str, Any] = {}
    rows: list[Row] = []
    left: list[str] = []
    before = 0.0
    for name, size in sizes.items():
        served = [(at, seconds) for at, seconds in points if 4 * before < at <= size / 2]
        before = size
        if not served:
            left.append(f"{name}: no size shows it alone")
            continue
        delay = number_of([seconds for _, seconds in served], "s")
        levels[name] = {"latency": delay, "cycles": None} if stated else {"size": seen[name], "latency": delay}
        rows += [Row(f"{name}, {quantity(at, 'B')}", "s", seconds, delay.value) for at, seconds in served]
    beyond = [(at, seconds) for at, seconds in points if at >= 2 * before]
    keys: dict[str, Any] = {"caches": {"levels": levels}} if levels else {}
    if beyond:
        delay = number_of([seconds for _, seconds in beyond], "s")
        keys["memory"] = {"latency": replace(delay, repeats=math.hypot(FOLLOWED, delay.repeats or 0.0))}
        rows += [Row(f"memory, {quantity(at, 'B')}", "s", seconds, delay.value) for at, seconds in beyond]
    else:
        left.append(f"memory: no size is twice the last cache's {quantity(before, 'B')}")
    if not keys:
        raise logs[0].wrong(
            0, f"its {len(points)} sizes show neither a level of {ask.part.use} nor the memory", "use larger sizes"
        )
    left += [f"stride {other}: {stride} is used, which a prefetcher follows least" for other in sorted(blocks) if other != stride]
    left += _steps(points, levels, stated, keys)
    notes = f"stride {stride} B; in order, without -t, a prefetcher may hide a part of memory's latency"
    return part(
        "lmbench", "cpu", f"lmbench, lat_mem_rd, stride {stride}", keys, use=ask.part.use, rows=rows, left=left, notes=notes
    )


def _blocks(log: Log) -> dict[int, Points]:
    """(bytes, seconds) by stride."""
    rows_by_stride: dict[int, list[tuple[float, float, int]]] = {}
    stride, loose = 0, 0
    for line, text in log.numbered():
        if match := _BLOCK.match(text):
            stride = int(match[1])
        elif match := _ROW.match(text):
            if stride:
                size, latency = (
                    log.number(match[1], "a size", line, zero=True),
                    log.number(match[2], "a latency", line, zero=True),
                )
                if size > 0 and latency > 0:
                    rows_by_stride.setdefault(stride, []).append((size, latency * 1e-9, line))
            else:
                loose = loose or line
        elif not text.strip():
            stride = 0
    if not rows_by_stride:
        hint = "bw_mem does not print what it did: give STREAM's log for bandwidths" if loose else _HINT
        raise log.wrong(loose, "nothing in it was printed by lat_mem_rd", hint)
    blocks: dict[int, Points] = {}
    for width, rows in rows_by_stride.items():
        for (size, _, _), (after, _, line) in pairwise(rows):
            if after <= size:
                raise log.wrong(line, f"size {after:g} after {size:g}: two runs in one block", "one block for each run")
        unit = _unit([size for size, _, _ in rows])
        blocks[width] = [(size * unit, seconds) for size, seconds, _ in rows]
    return blocks


def _unit(sizes: Sequence[float]) -> float:
    """Bytes of a unit: sizes are sixteenths of powers of two in it."""
    large = [size for size in sizes if size >= 1]
    odd = [size for size in large if abs(size * 16 - round(size * 16)) > 1e-3]
    odd_million = [size for size in large if abs(size / 1.048576 * 16 - round(size / 1.048576 * 16)) > 1e-2]
    return 1e6 if len(odd_million) < len(odd) else 2.0**20


def _sizes(points: Points) -> dict[str, Number]:
    """Sizes of the caches: between the last of a plateau and the next larger one."""
    ends = [end for end, _ in _plateaus(points)][:-1]
    after = [min(size for size, _ in points if size > end) for end in ends]
    return {
        f"L{level}": Number(
            math.sqrt(last * first), "B", 2, math.log(first / last) / math.sqrt(12), note="where latency steps up"
        )
        for level, (last, first) in enumerate(zip(ends, after, strict=True), 1)
    }


def _plateaus(points: Points) -> list[tuple[float, float]]:
    """(largest size, seconds) of each piece of nearly equal latency; a piece that rises between two is none."""
    logs = [math.log(seconds) for _, seconds in points]
    count, best = len(points), math.inf
    chosen: list[tuple[int, int]] = []
    sums, squares = [0.0], [0.0]
    for value in logs:
        sums.append(sums[-1] + value)
        squares.append(squares[-1] + value * value)

    def error(start: int, end: int) -> float:
        return squares[end] - squares[start] - (sums[end] - sums[start]) ** 2 / (end - start)

    rows: dict[int, tuple[float, list[tuple[int, int]]]] = {0: (0.0, [])}
    for pieces in range(1, min(2 * MOST, count // LEAST) + 1):
        after: dict[int, tuple[float, list[tuple[int, int]]]] = {}
        for start, (off, cuts) in rows.items():
            for end in range(start + LEAST, count + 1):
                total = off + error(start, end)
                if total < after.get(end, (math.inf, []))[0]:
                    after[end] = total, [*cuts, (start, end)]
        rows = after
        if count in rows:
            criterion = count * math.log(max(rows[count][0], 0.0) / count + NOISE**2) + 2 * pieces * math.log(count)
            if criterion < best:
                best, chosen = criterion, rows[count][1]
    levels: list[tuple[float, float]] = []
    for start, end in chosen:
        level = median(seconds for _, seconds in points[start:end])
        near = [seconds for _, seconds in points[start:end] if _is_near(seconds, level)]
        if len(near) < max(LEAST, 2 * (end - start) // 3):
            continue  # it rises from one plateau to the next
        if not levels or level >= STEP * levels[-1][1]:
            levels.append((0.0, level))
    return [(max(size for size, seconds in points if seconds < level or _is_near(seconds, level)), level) for _, level in levels]


def _is_near(seconds: float, level: float) -> bool:
    return abs(math.log(seconds / level)) < math.log(STEP) / 2


def _steps(points: Points, levels: Mapping[str, Any], stated: Mapping[str, float], keys: Mapping[str, Any]) -> list[str]:
    """Sentences on steps of the latency far from the sizes that the part says."""
    delays = [(name, level["latency"].value) for name, level in levels.items()]
    if isinstance(memory := keys.get("memory", {}).get("latency"), Number):
        delays.append(("memory", memory.value))
    sentences = []
    for (name, near), (_, far) in pairwise(delays):
        middle = math.sqrt(near * far)
        step = next((size for size, seconds in points if seconds > middle), 0.0)
        if name in stated and far > STEP * near and step and not 0.5 <= step / stated[name] <= 2.0:
            sentences.append(
                f"{name}: the latency steps up at {quantity(step, 'B')}, but its size is {quantity(stated[name], 'B')}"
            )
    return sentences
