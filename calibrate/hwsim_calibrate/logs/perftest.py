"""perftest's ib_write_bw and the like: the bandwidth of a network card, and what one message takes of it.

     #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]
     65536      5000             11030.78            11030.45             0.176487

The header tells the unit: MB/sec and MiB/sec are 2^20 B/s, Gb/sec 1e9 bits (--report_gbits). The peak is 0 where the run has a
duration. `-b` counts both directions. A message of one queue takes at least as long as the smallest ones follow each other; with
a post list several share what a doorbell takes. Messages below 32 KiB measure no bandwidth.

Source: linux-rdma/perftest, src/perftest_parameters.h.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from hwsim_calibrate.fit.writing import quantity
from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.log import Log, Section
from hwsim_calibrate.logs.result import REPEATS, Result, Row, number_of, part

_HEAD: Final = re.compile(r"#bytes\s+#iterations\s+BW peak\s*\[(\S+?)\].*MsgRate\s*\[Mpps\]", re.IGNORECASE)
_OTHER: Final = re.compile(r"#bytes\s+#iterations\s+(t_min|tps)", re.IGNORECASE)
_ROW: Final = re.compile(r"^\s*(\d{1,15})\s+(\d{1,15})\s+(\S+)\s+(\S+)\s+(\S+)(?:\s+\S+)?\s*$")
_TITLE: Final = re.compile(
    r"^\s*((?:RDMA_Write|RDMA_Read|Send|Atomic\S*|Raw Ethernet)\s+(?:(?:Post List|(Bidirectional))\s+)*BW)\s+Test", re.IGNORECASE
)
_LIST: Final = re.compile(r"\bPost List BW|post[_ ]list\s*:\s*(?:[2-9]|\d{2})", re.IGNORECASE)
_LIMIT: Final = re.compile(r"rate[ _]limit[^:]*:\s*[1-9]", re.IGNORECASE)
_QUEUES: Final = re.compile(r"Number of qps\s*:\s*(\d{1,6})")
UNITS: Final = {"mb/sec": 2.0**20, "mib/sec": 2.0**20, "gb/sec": 1e9 / 8}
_HINT: Final = "it has a header `#bytes #iterations BW peak[MiB/sec] BW average[MiB/sec] MsgRate[Mpps]`"
LARGE: Final = 32768  # bytes from which its bytes do
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
    queues, listed = 1, False
    for log in logs:
        sections = log.sections(_TITLE, _ROW)
        for section in sections:
            found, several = section.said(_TITLE), section.said(_QUEUES)
            test = " ".join(found[1].lower().split()) if found else "bandwidth"
            tests.setdefault(test, log)
            if len(tests) > 1:
                first = next(iter(tests))
                message = f"it is a {test} test, and {tests[first].name} "
                message += f"{'begins with' if tests[first] is log else 'is'} a {first} test"
                raise log.wrong(section.rows[0][0], message, "fit the logs of one test together")
            if section.said(_LIMIT) is not None:
                raise log.wrong(section.rows[0][0], "a rate limit held the run back", "its bandwidth is not the card's")
            runs += _read(section, both=bool(found and found[2]))
            queues = max(queues, int(several[1]) if several else 1)
            listed |= section.said(_LIST) is not None
        if not sections:
            latency = next((line for line, text in log.numbered() if _OTHER.search(text)), 0)
            if latency:
                raise log.wrong(latency, "a latency test of perftest", "its bandwidth tests are read: ib_write_bw -a")
            raise log.nothing("a bandwidth test of perftest", _HINT)
    test = next(iter(tests))
    largest = max(size for size, _ in runs)
    longest = [rate for size, rate in runs if size >= max(largest / 2, LARGE)]
    grows = math.log(max(longest) / min(longest)) if longest else 0.0
    keys: dict[str, Any] = {"bandwidth": number_of(longest, "B/s", "payload, one direction")} if longest else {}
    if grows > REPEATS:
        note = "payload, one direction; it still grows with the size: at least"
        keys["bandwidth"] = replace(keys["bandwidth"], repeats=2.0 * grows, note=note)
    left: list[str] = []
    gaps = [size / rate for size, rate in runs if size <= SMALL]
    gaps = [gap for gap in gaps if gap <= NEAR * min(gaps)]
    gap = number_of(gaps, "s", "messages of a post list share a doorbell" if listed else "") if gaps else None
    peak = keys["bandwidth"].value if keys else getattr(ask.part.model, "bandwidth", math.inf) if ask.part else math.inf
    if gap is not None and queues > 1:
        keys["message_rate"] = replace(gap, value=1.0 / gap.value, unit="1/s")
        left.append(f"the overhead of a message: {queues} queues send at once; run one (-q 1)")
    elif gap is not None:
        keys["overhead"] = {"rdma": gap}
    else:
        left.append("the overhead of a message: it takes sizes from 2 B on (-a)")
    least = gap.value if gap is not None else 0.0
    rows = [Row(f"{size:,.0f} B", "B/s", rate, size / max(least, size / peak)) for size, rate in sorted(runs)
            if gap is not None or size >= LARGE]  # fmt: skip
    if ask.part is None and not longest:
        had = f": a message takes {quantity(gap.value, 's')}" if gap is not None else ""
        message = f"messages of up to {quantity(largest, 'B')} measure no bandwidth of a card{had}"
        raise logs[0].wrong(0, message, "name the card that it goes into (--part), or run all sizes (-a)")
    notes = f"{test}, {queues} queue{'s' if queues > 1 else ''}; largest messages {quantity(largest, 'B')}"
    if ask.part is None:
        keys["protocol"] = "rdma"
    use = ask.part.use if ask.part else ""
    return part("perftest", "nic", f"perftest, {test}", keys, use=use, notes=notes, rows=rows, left=left)


def _read(section: Section, *, both: bool) -> list[Run]:
    log, unit = section.log, 0.0
    runs: dict[tuple[float, float], Run] = {}
    for line, text in section.lines:
        if match := _HEAD.search(text):
            name = match[1].lower()
            if name not in UNITS:
                raise log.wrong(line, f"unknown unit {match[1]}", f"there are {', '.join(UNITS)}")
            unit = UNITS[name]
        elif _OTHER.search(text):
            raise log.wrong(line, "a latency test of perftest", "its bandwidth tests are read: ib_write_bw -a")
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
    return list(runs.values())
