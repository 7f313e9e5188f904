"""Parser of STREAM logs: four loops in MB/s = 1e6 B/s, best of all repetitions except the first.

    Function    Best Rate MB/s  Avg time     Min time     Max time
    Copy:           21166.6     0.060628     0.060473     0.060775

Source: McCalpin, stream.c 5.10; 5.9 has `Rate (MB/s)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from hwsim_calibrate.logs.log import Log
from hwsim_calibrate.logs.memory_bandwidth import LOOPS, Loop, fit_memory, four_numbers
from hwsim_calibrate.logs.options import LogOptions
from hwsim_calibrate.logs.result import Result

_ROW: Final = re.compile(r"^\s*(Copy|Scale|Add|Triad):\s+(.*)$")
_THREADS: Final = re.compile(r"Number of Threads counted\s*=\s*(\d{1,6})\b")
_ASKED: Final = re.compile(r"Number of Threads requested\s*=\s*(\d{1,6})\b")
_WORD: Final = re.compile(r"system uses (\d{1,2}) bytes per")
_ARRAY: Final = re.compile(r"Array size\s*=\s*(\d{1,15})\b")
_OPENS: Final = re.compile(r"^STREAM version|system uses \d+ bytes per")
_HINT: Final = "expected lines such as `Copy: 21166.6 0.060628 0.060473 0.060775`"
_TOLERANCE: Final = 0.02  # between the rate and bytes over time


def fit(logs: Sequence[Log], options: LogOptions) -> Result:
    """Fit the sustained memory bandwidth; a log of one thread also gives the bandwidth of one core."""

    def read(log: Log) -> list[Loop]:
        return [loop for run in log.sections(_OPENS, _ROW) for loop in _loops(log, run.lines)]

    return fit_memory("STREAM", logs, read, _HINT, options)


def _loops(log: Log, lines: Sequence[tuple[int, str]]) -> Iterator[Loop]:
    threads, word, count = 0, 8.0, 0.0
    for line, text in lines:
        if (match := _THREADS.search(text)) or (match := _ASKED.search(text)):
            threads = int(match[1])
        elif match := _WORD.search(text):
            word = log.number(match[1], "the bytes per element", line)
        elif match := _ARRAY.search(text):
            count = log.number(match[1], "the array size", line)
        elif "Failed Validation" in text:
            raise log.wrong(line, "STREAM failed its validation", "run it again: its rates are not used")
        elif match := _ROW.match(text):
            rate, mean, shortest, longest = four_numbers(log, line, match[2].split(), "STREAM", _HINT)
            if not shortest <= mean * 1.001 or not mean <= longest * 1.001:
                raise log.wrong(line, "the mean time is not between the minimum and the maximum", _HINT)
            name = match[1].lower()
            computed = sum(LOOPS[name]) * word * count / shortest / 1e6
            if count and abs(rate / computed - 1.0) > _TOLERANCE + 2e-6 / shortest:
                message = f"{rate:g} MB/s, but arrays of {word * count:g} B in {shortest:g} s are {computed:.6g} MB/s"
                raise log.wrong(line, message, "does the file contain two logs?")
            yield Loop(name, rate * 1e6, max(mean / shortest, 1.0), threads, word * count, log, line)
