"""STREAM: four loops, MB/s = 1e6 B/s, the best of the repetitions but the first.

    Function    Best Rate MB/s  Avg time     Min time     Max time
    Copy:           21166.6     0.060628     0.060473     0.060775

Source: McCalpin, stream.c 5.10; 5.9 has `Rate (MB/s)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.log import Log
from hwsim_calibrate.logs.result import Result
from hwsim_calibrate.logs.sustained import LOOPS, Loop, four, memory_of

_ROW: Final = re.compile(r"^\s*(Copy|Scale|Add|Triad):\s+(.*)$")
_THREADS: Final = re.compile(r"Number of Threads counted\s*=\s*(\d{1,6})\b")
_ASKED: Final = re.compile(r"Number of Threads requested\s*=\s*(\d{1,6})\b")
_WORD: Final = re.compile(r"system uses (\d{1,2}) bytes per")
_ARRAY: Final = re.compile(r"Array size\s*=\s*(\d{1,15})\b")
_OPENS: Final = re.compile(r"^STREAM version|system uses \d+ bytes per")
_HINT: Final = "it has lines of `Copy: 21166.6 0.060628 0.060473 0.060775`"
_OFF: Final = 0.02  # of a rate from what its time and the array say


def fit(logs: Sequence[Log], ask: Ask) -> Result:
    """The memory by what it sustains; with logs of one thread and of all, also of one core."""
    return memory_of(
        "STREAM", logs, lambda log: [loop for run in log.sections(_OPENS, _ROW) for loop in _loops(log, run.lines)], _HINT, ask
    )


def _loops(log: Log, lines: Sequence[tuple[int, str]]) -> Iterator[Loop]:
    threads, word, count = 0, 8.0, 0.0
    for line, text in lines:
        if (match := _THREADS.search(text)) or (match := _ASKED.search(text)):
            threads = int(match[1])
        elif match := _WORD.search(text):
            word = log.number(match[1], "bytes of an element", line)
        elif match := _ARRAY.search(text):
            count = log.number(match[1], "the size of an array", line)
        elif "Failed Validation" in text:
            raise log.wrong(line, "STREAM computed wrong values", "its rates are not used")
        elif match := _ROW.match(text):
            rate, mean, least, most = four(log, line, match[2].split(), "STREAM", _HINT)
            if not least <= mean * 1.001 or not mean <= most * 1.001:
                raise log.wrong(line, "the mean time is not between the least and the most", _HINT)
            name = match[1].lower()
            computed = sum(LOOPS[name]) * word * count / least / 1e6
            if count and abs(rate / computed - 1.0) > _OFF + 2e-6 / least:
                message = f"{rate:g} MB/s, but arrays of {word * count:g} B in {least:g} s are {computed:.6g} MB/s"
                raise log.wrong(line, message, "two logs in one file?")
            yield Loop(name, rate * 1e6, max(mean / least, 1.0), threads, word * count, log, line)
