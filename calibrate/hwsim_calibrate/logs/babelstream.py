"""BabelStream on GPUs and CPUs: MBytes/sec are 1e6 B/s, with --mibibytes 2^20; as text or with --csv.

    Function    MBytes/sec  Min (sec)   Max         Average
    Copy        3067466.4   0.00018     0.00018     0.00018

    function,num_times,n_elements,sizeof,max_mbytes_per_sec,min_runtime,max_runtime,avg_runtime

Source: UoB-HPC/BabelStream, src/main.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.log import Log
from hwsim_calibrate.logs.result import Result
from hwsim_calibrate.logs.sustained import LOOPS, Loop, four, memory_of

_OPENS: Final = re.compile(r"^BabelStream\s*$|^Array size:")
_HEAD: Final = re.compile(r"^\s*Function\s+(M(?:i)?Bytes)/sec\b", re.IGNORECASE)
_ROW: Final = re.compile(r"^\s*(Copy|Mul|Add|Triad|Dot|Nstream)\s+(.*)$")
_ARRAY: Final = re.compile(r"^\s*Array size:\s*([\d.]+)\s*(KB|MB|GB|KiB|MiB|GiB)\b")
_SIZES: Final = {"KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
_HINT: Final = "it has lines of `Copy 3067466.4 0.00018 0.00018 0.00018`, or is the output of --csv"
_OFF: Final = 0.02


def fit(logs: Sequence[Log], ask: Ask) -> Result:
    """The memory by what it sustains of reading and of copying."""
    return memory_of("BabelStream", logs, _loops, _HINT, ask)


def _loops(log: Log) -> list[Loop]:
    runs = log.sections(_OPENS, _ROW)
    return [*(loop for run in runs for loop in _of_text(log, run.lines)), *_of_csv(log)]


def _of_text(log: Log, lines: Sequence[tuple[int, str]]) -> Iterator[Loop]:
    unit, array = 0.0, 0.0
    for line, text in lines:
        if match := _HEAD.match(text):
            unit = 2.0**20 if match[1].lower() == "mibytes" else 1e6
        elif match := _ARRAY.match(text):
            array = log.number(match[1], "the size of an array", line) * _SIZES[match[2]]
        elif unit and (match := _ROW.match(text)):
            rate, least, most, mean = four(log, line, match[2].split(), "BabelStream", _HINT)
            yield _loop(log, line, match[1], (rate * unit, least, most, mean), array)


def _of_csv(log: Log) -> Iterator[Loop]:
    columns: list[str] = []
    for line, text in log.numbered():
        cells = [cell.strip() for cell in text.split(",")]
        if cells[0] == "function" and "min_runtime" in cells:
            columns = cells
        elif columns and cells[0].lower() in LOOPS:
            if len(cells) != len(columns):
                raise log.wrong(line, f"{len(cells)} columns instead of {len(columns)}", _HINT)
            row = dict(zip(columns, cells, strict=True))
            name = next((each for each in ("max_mbytes_per_sec", "max_mibytes_per_sec") if each in row), "")
            if not name or not {"n_elements", "sizeof", "max_runtime", "avg_runtime"} <= set(row):
                raise log.wrong(line, "the header lacks columns of BabelStream", _HINT)
            rate, count, word, least, most, mean = (
                log.number(row[key], key, line)
                for key in (name, "n_elements", "sizeof", "min_runtime", "max_runtime", "avg_runtime")
            )
            unit = 1e6 if name == "max_mbytes_per_sec" else 2.0**20
            computed = sum(LOOPS[cells[0].lower()]) * count * word / least
            if abs(rate * unit / computed - 1.0) > _OFF:
                raise log.wrong(line, f"{name} is {rate:g}, but {count:g} elements in {least:g} s are {computed / unit:g}", _HINT)
            yield _loop(log, line, cells[0], (rate * unit, least, most, mean), count * word)


def _loop(log: Log, line: int, name: str, numbers: tuple[float, float, float, float], array: float) -> Loop:
    rate, least, most, mean = numbers
    if not least <= mean * 1.1 or not mean <= most * 1.1:  # five digits after the point
        raise log.wrong(line, "the mean time is not between the least and the most", _HINT)
    return Loop(name.lower(), rate, max(mean / least, 1.0), 0, array, log, line)
