"""Parser of BabelStream logs from GPUs and CPUs, as text or CSV. MBytes/sec is 1e6 B/s, with --mibibytes 2^20 B/s.

    Function    MBytes/sec  Min (sec)   Max         Average
    Copy        3067466.4   0.00018     0.00018     0.00018

    function,num_times,n_elements,sizeof,max_mbytes_per_sec,min_runtime,max_runtime,avg_runtime

Source: UoB-HPC/BabelStream, src/main.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from hwsim_calibrate.logs.log import Log
from hwsim_calibrate.logs.memory_bandwidth import LOOPS, Loop, fit_memory, four_numbers
from hwsim_calibrate.logs.options import LogOptions
from hwsim_calibrate.logs.result import Result

_OPENS: Final = re.compile(r"^BabelStream\s*$|^Array size:")
_HEAD: Final = re.compile(r"^\s*Function\s+(M(?:i)?Bytes)/sec\b", re.IGNORECASE)
_ROW: Final = re.compile(r"^\s*(Copy|Mul|Add|Triad|Dot|Nstream)\s+(.*)$")
_ARRAY: Final = re.compile(r"^\s*Array size:\s*([\d.]+)\s*(KB|MB|GB|KiB|MiB|GiB)\b")
_SIZES: Final = {"KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
_HINT: Final = "expected lines such as `Copy 3067466.4 0.00018 0.00018 0.00018`, or the output of --csv"
_TOLERANCE: Final = 0.02  # between the rate and bytes over time


def fit(logs: Sequence[Log], options: LogOptions) -> Result:
    """Fit the sustained memory bandwidth."""
    return fit_memory("BabelStream", logs, _loops, _HINT, options)


def _loops(log: Log) -> list[Loop]:
    runs = log.sections(_OPENS, _ROW)
    return [*(loop for run in runs for loop in _of_text(log, run.lines)), *_of_csv(log)]


def _of_text(log: Log, lines: Sequence[tuple[int, str]]) -> Iterator[Loop]:
    unit, array = 0.0, 0.0
    for line, text in lines:
        if match := _HEAD.match(text):
            unit = 2.0**20 if match[1].lower() == "mibytes" else 1e6
        elif match := _ARRAY.match(text):
            array = log.number(match[1], "the array size", line) * _SIZES[match[2]]
        elif unit and (match := _ROW.match(text)):
            rate, shortest, longest, mean = four_numbers(log, line, match[2].split(), "BabelStream", _HINT)
            yield _loop(log, line, match[1], (rate * unit, shortest, longest, mean), array)


def _of_csv(log: Log) -> Iterator[Loop]:
    columns: list[str] = []
    for line, text in log.numbered():
        cells = [cell.strip() for cell in text.split(",")]
        if cells[0] == "function" and "min_runtime" in cells:
            columns = cells
        elif columns and cells[0].lower() in LOOPS:
            if len(cells) != len(columns):
                raise log.wrong(line, f"expected {len(columns)} columns, got {len(cells)}", _HINT)
            row = dict(zip(columns, cells, strict=True))
            name = next((key for key in ("max_mbytes_per_sec", "max_mibytes_per_sec") if key in row), "")
            if not name or not {"n_elements", "sizeof", "max_runtime", "avg_runtime"} <= set(row):
                raise log.wrong(line, "the header has not all columns of BabelStream", _HINT)
            rate, count, word, shortest, longest, mean = (
                log.number(row[key], key, line)
                for key in (name, "n_elements", "sizeof", "min_runtime", "max_runtime", "avg_runtime")
            )
            unit = 1e6 if name == "max_mbytes_per_sec" else 2.0**20
            computed = sum(LOOPS[cells[0].lower()]) * count * word / shortest
            if abs(rate * unit / computed - 1.0) > _TOLERANCE:
                message = f"{name} is {rate:g}, but {count:g} elements in {shortest:g} s are {computed / unit:g}"
                raise log.wrong(line, message, _HINT)
            yield _loop(log, line, cells[0], (rate * unit, shortest, longest, mean), count * word)


def _loop(log: Log, line: int, name: str, numbers: tuple[float, float, float, float], array: float) -> Loop:
    rate, shortest, longest, mean = numbers
    if not shortest <= mean * 1.1 or not mean <= longest * 1.1:  # the log has five decimals
        raise log.wrong(line, "the mean time is not between the minimum and the maximum", _HINT)
    return Loop(name.lower(), rate, max(mean / shortest, 1.0), 0, array, log, line)
