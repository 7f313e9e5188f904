"""lmbench's lat_mem_rd: how long a read waits for the one before, by how much memory they go around in.

    "stride=128
    0.00049 1.437                 MiB (some builds: 1e6 B), ns

A level shows where the level before it holds little and it holds all: from four times the size before it to half of its own. If
the sizes are not known, levels are plateaus: stretches of nearly equal latency over a factor of two in size.

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
MEMORY: Final = "memory"
# Times the last cache, the farthest that enough rows are at: random reads still find some lines.
FARTHEST: Final = (8.0, 4.0, 2.0)
LEAST: Final = 3  # rows of a level
STEP: Final = 1.25  # latency of a plateau over the one before
FOLLOWED: Final = 0.25  # standard deviation of a latency that a prefetcher may have hidden
_BLOCK: Final = re.compile(r'^\s*"?stride=(\d{1,9})\b')
_ROW: Final = re.compile(r"^\s*([\d.]+)\s+([\d.]+)\s*$")
_HINT: Final = 'it has a line `"stride=128` and lines of `size latency`; lat_mem_rd writes them to stderr'
Points = list[tuple[float, float]]  # bytes, seconds
Place = tuple[Points, float]  # rows of a level; the next larger size


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
        message = f"a stride of {stride} B reads a line of {LINE} B several times"
        raise logs[0].wrong(0, message, f"run it with a stride of {2 * LINE}")
    points = sorted(blocks[stride])
    stated = {name: level.size for name, level in cpu.caches.levels.items()} if cpu.caches else {}
    places = _stated(points, stated) if stated else _plateaus(points)
    levels: dict[str, Any] = {}
    rows: list[Row] = []
    left: list[str] = []
    for name, (served, after) in places.items():
        if not served:
            left.append(f"{name}: no size shows it alone")
            continue
        delay = number_of([seconds for _, seconds in served], "s")
        rows += [Row(f"{name}, {quantity(at, 'B')}", "s", seconds, delay.value) for at, seconds in served]
        if name == MEMORY:
            levels[name] = {"latency": replace(delay, repeats=math.hypot(FOLLOWED, delay.repeats or 0.0))}
        else:
            levels[name] = {"latency": delay, **({"cycles": None} if stated else {"size": _size(served[-1][0], after)})}
    memory = levels.pop(MEMORY, None)
    keys: dict[str, Any] = {"caches": {"levels": levels}} if levels else {}
    keys |= {"memory": {"latency": memory["latency"]}} if memory else {}
    if not keys:
        message = f"its {len(points)} sizes show neither a level of {ask.part.use} nor the memory"
        raise logs[0].wrong(0, message, "use larger sizes")
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
                size, latency = (log.number(match[at], ("a size", "a latency")[at - 1], line, zero=True) for at in (1, 2))
                if size > 0 and latency > 0:
                    rows_by_stride.setdefault(stride, []).append((size, latency * 1e-9, line))
            else:
                loose = loose or line
        elif stride and text[:1].isdigit():
            raise log.wrong(line, "no size and latency: damaged, or two outputs mixed up", _HINT)
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


def _stated(points: Points, sizes: Mapping[str, float]) -> dict[str, Place]:
    """Rows that show each level of these sizes, and memory."""
    places: dict[str, Place] = {}
    before = 0.0
    for name, size in sizes.items():
        places[name] = [(at, seconds) for at, seconds in points if 4 * before < at <= size / 2], 0.0
        before = size
    beyond = ([(at, seconds) for at, seconds in points if at >= times * before] for times in FARTHEST)
    return places | {MEMORY: (next((rows for rows in beyond if len(rows) >= LEAST), []), 0.0)}


def _plateaus(points: Points) -> dict[str, Place]:
    """Rows of each stretch of nearly equal latency over a factor of two in size; the last one is memory."""
    stretches: list[Points] = []
    at = 0
    while at < len(points):
        end = at + 1
        while end < len(points) and _is_near(points[end][1], _level(points[at:end])):
            end += 1
        stretch = points[at:end]
        if len(stretch) >= LEAST and stretch[-1][0] >= 2 * stretch[0][0]:
            if stretches and _level(stretch) < STEP * _level(stretches[-1]):
                stretches[-1] += stretch
            else:
                stretches.append(stretch)
            at = end
        else:
            at += 1
    after = [next((size for size, _ in points if size > stretch[-1][0]), 0.0) for stretch in stretches]
    names = [*(f"L{level}" for level in range(1, len(stretches))), MEMORY]
    return dict(zip(names, zip(stretches, after, strict=True), strict=False))


def _size(last: float, after: float) -> Number:
    """The size of a cache between the last size that it serves and the next one."""
    apart = math.log(after / last)
    return Number(
        math.sqrt(last * after), "B", 2, apart / math.sqrt(12), note="where latency steps up; it may be the TLB's reach"
    )


def _level(points: Points) -> float:
    return median(seconds for _, seconds in points)


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
