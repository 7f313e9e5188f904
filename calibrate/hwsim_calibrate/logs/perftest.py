"""perftest's ib_write_bw and the like: the bandwidth of a network card, and what one message takes of it.

     #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]
     65536      5000             11030.78            11030.45             0.176487

The header tells the unit: MB/sec and MiB/sec are 2^20 B/s, Gb/sec 1e9 bits (--report_gbits). The peak is 0 where the run has a
duration. `-b` counts both directions. A message of one queue takes at least as long as the smallest ones follow each other.

Source: linux-rdma/perftest, src/perftest_parameters.h.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from hwsim_calibrate.fit.writing import quantity
from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.log import Log
from hwsim_calibrate.logs.result import Result, Row, number_of, part

_HEAD: Final = re.compile(r"#bytes\s+#iterations\s+BW peak\s*\[(\S+?)\].*MsgRate\s*\[Mpps\]", re.IGNORECASE)
_OTHER: Final = re.compile(r"#bytes\s+#iterations\s+(t_min|tps)", re.IGNORECASE)
_ROW: Final = re.compile(r"^\s*(\d{1,15})\s+(\d{1,15})\s+(\S+)\s+(\S+)\s+(\S+)\s*$")
_TITLE: Final = re.compile(r"^\s*((?:RDMA_Write|RDMA_Read|Send|Atomic\S*)\s+(?:(Bidirectional)\s+)?BW)\s+Test", re.IGNORECASE)
_QUEUES: Final = re.compile(r"Number of qps\s*:\s*(\d{1,6})")
UNITS: Final = {"mb/sec": 2.0**20, "mib/sec": 2.0**20, "gb/sec": 1e9 / 8}
_HINT: Final = "it has a header `#bytes #iterations BW peak[MiB/sec] BW average[MiB/sec] MsgRate[Mpps]`"
SMALL: Final = 512  # bytes up to which the message, not its bytes, takes the time
NEAR: Final = 1.15  # of the least time: sizes that take as long
_OFF: Final = 0.05  # of the bandwidth from messages a second times bytes


class Run(NamedTuple):
    """Bytes of a message, and B/s in one direction."""

    size: float
    rate: float


def fit(logs: Sequence[Log], ask: Ask) -> Result:
    """The bandwidth of a card in each direction; of several sizes also what a message takes."""
    runs: list[Run] = []
    tests: dict[str, Log] = {}
    queues = 1
    for log in logs:
        of_log, test, several = _read(log)
        tests.setdefault(test, log)
        if len(tests) > 1:
            first, second = list(tests.items())[:2]
            raise log.wrong(
                0, f"it is a {second[0]} test, and {first[1].name} a {first[0]} test", "fit the logs of one test together"
            )
        runs, queues = runs + of_log, max(queues, several)
    test = next(iter(tests))
    largest = max(size for size, _ in runs)
    longest = [rate for size, rate in runs if size >= largest / 2]
    keys: dict[str, Any] = {"bandwidth": number_of(longest, "B/s", "payload, one direction")}
    left: list[str] = []
    rows: list[Row] = []
    gaps = [size / rate for size, rate in runs if size <= SMALL]
    if gaps:
        gaps = [gap for gap in gaps if gap <= NEAR * min(gaps)]
        gap = number_of(gaps, "s")
        if queues > 1:
            keys["message_rate"] = replace(gap, value=1.0 / gap.value, unit="1/s")
            left.append(f"the overhead of a message: {queues} queues send at once; run one (-q 1)")
        else:
            keys["overhead"] = {"rdma": gap}
        times = [max(gap.value, size / keys["bandwidth"].value) for size, _ in sorted(runs)]
        rows = [Row(f"{size:,.0f} B", "B/s", rate, size / time) for (size, rate), time in zip(sorted(runs), times, strict=True)]
    else:
        left.append("the overhead of a message: it takes sizes from 2 B on (-a)")
        rows = [Row(f"{size:,.0f} B", "B/s", measured, keys["bandwidth"].value) for size, measured in sorted(runs)]
    notes = f"{test}, {queues} queue{'s' if queues > 1 else ''}; largest messages {quantity(largest, 'B')}"
    if ask.part is None:
        keys["protocol"] = "rdma"
    use = ask.part.use if ask.part else ""
    return part("perftest", "nic", f"perftest, {test}", keys, use=use, notes=notes, rows=rows, left=left)


def _read(log: Log) -> tuple[list[Run], str, int]:
    """(runs, name of the test, queues)."""
    unit, both, test, queues = 0.0, False, "", 1
    runs: dict[tuple[float, float], Run] = {}
    for line, text in log.numbered():
        if match := _TITLE.search(text):
            if test and match[1].lower() != test:
                raise log.wrong(line, f"a {match[1].lower()} test after a {test} test", "one test in a file")
            test, both = match[1].lower(), bool(match[2])
        elif match := _QUEUES.search(text):
            queues = max(int(match[1]), 1)
        elif _OTHER.search(text):
            raise log.wrong(line, "a latency test of perftest", "its bandwidth tests are read: ib_write_bw -a")
        elif match := _HEAD.search(text):
            name = match[1].lower()
            if name not in UNITS:
                raise log.wrong(line, f"unknown unit {match[1]}", f"there are {', '.join(UNITS)}")
            unit = UNITS[name]
        elif unit and (match := _ROW.match(text)):
            size = log.number(match[1], "a size", line)
            peak, mean, messages = (log.number(match[at], "a number of perftest", line, zero=True) for at in (3, 4, 5))
            if mean <= 0:
                raise log.wrong(line, "an average bandwidth of 0", "the run failed, or was too short")
            if 0 < peak < 0.95 * mean:
                raise log.wrong(line, f"the peak {peak:g} is below the average {mean:g}", _HINT)
            if messages > 0 and abs(size * messages * 1e6 / (mean * unit) - 1.0) > _OFF + 0.006 / mean + 1e-6 / messages:
                message = f"{messages:g} million messages of {match[1]} B a second are not {mean:g} of the header's unit"
                raise log.wrong(line, message, "two logs in one file, or another unit?")
            runs[size, mean] = Run(size, mean * unit / (2.0 if both else 1.0))
    if not runs:
        raise log.nothing("a bandwidth test of perftest", _HINT)
    return list(runs.values()), test or "bandwidth", queues
