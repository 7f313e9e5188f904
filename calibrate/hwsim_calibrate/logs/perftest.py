"""Parser of perftest's bandwidth tests, such as ib_write_bw, which become bandwidth and message overhead of a NIC.

     #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]
     65536      5000             11030.78            11030.45             0.176487

The header has the unit: MB/sec and MiB/sec are 2^20 B/s, Gb/sec is 1e9 b/s (--report_gbits). The peak is 0 for runs with a fixed
duration. `-b` counts both directions. The overhead of a message is the interval between the smallest messages of one queue pair;
with a post list, several messages share a doorbell. Messages below 32 KiB do not measure the bandwidth.

Source: linux-rdma/perftest, src/perftest_parameters.h.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from hwsim_calibrate.fit.machine_file import quantity
from hwsim_calibrate.logs.log import Log, Section
from hwsim_calibrate.logs.options import LogOptions
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
_HINT: Final = "expected a header `#bytes #iterations BW peak[MiB/sec] BW average[MiB/sec] MsgRate[Mpps]`"
LARGE: Final = 32768  # bytes of a message from which the bandwidth is measured
SMALL: Final = 512  # bytes of a message up to which the overhead is measured
MAX_GAP: Final = 1.15  # over the shortest interval, up to which sizes determine the overhead
_TOLERANCE: Final = 0.05  # between the bandwidth and messages per second times size


class Run(NamedTuple):
    """The size of a message (bytes), and the rate in one direction (B/s)."""

    size: float
    rate: float


def fit(logs: Sequence[Log], options: LogOptions) -> Result:
    """Fit the bandwidth of a NIC in one direction and, with small messages, the overhead per message."""
    runs: list[Run] = []
    tests: dict[str, Log] = {}
    queues, listed = 1, False
    for log in logs:
        sections = log.sections(_TITLE, _ROW)
        for section in sections:
            found, queue_count = section.find(_TITLE), section.find(_QUEUES)
            test = " ".join(found[1].lower().split()) if found else "bandwidth"
            tests.setdefault(test, log)
            if len(tests) > 1:
                first = next(iter(tests))
                message = f"the log is of a {test} test, but {tests[first].name} "
                message += f"{'starts with' if tests[first] is log else 'is of'} a {first} test"
                raise log.wrong(section.rows[0][0], message, "import the logs of each test separately")
            if section.find(_LIMIT) is not None:
                raise log.wrong(section.rows[0][0], "a rate limit throttled the run", "use a run without a limit")
            runs += _read(section, both=bool(found and found[2]))
            queues = max(queues, int(queue_count[1]) if queue_count else 1)
            listed |= section.find(_LIST) is not None
        if not sections:
            latency = next((line for line, text in log.numbered() if _OTHER.search(text)), 0)
            if latency:
                raise log.wrong(latency, "latency tests of perftest are not supported", "use a bandwidth test: ib_write_bw -a")
            raise log.nothing("a bandwidth test of perftest", _HINT)
    test = next(iter(tests))
    largest = max(size for size, _ in runs)
    longest = [rate for size, rate in runs if size >= max(largest / 2, LARGE)]
    grows = math.log(max(longest) / min(longest)) if longest else 0.0
    keys: dict[str, Any] = {"bandwidth": number_of(longest, "B/s", "payload, one direction")} if longest else {}
    if grows > REPEATS:
        note = "payload, one direction; a lower bound, because it still increases with the size"
        keys["bandwidth"] = replace(keys["bandwidth"], repeats=2.0 * grows, note=note)
    left: list[str] = []
    gaps = [size / rate for size, rate in runs if size <= SMALL]
    gaps = [gap for gap in gaps if gap <= MAX_GAP * min(gaps)]
    gap = number_of(gaps, "s", "messages of a post list share a doorbell" if listed else "") if gaps else None
    peak = keys["bandwidth"].value if keys else getattr(options.part.model, "bandwidth", math.inf) if options.part else math.inf
    if gap is not None and queues > 1:
        keys["message_rate"] = replace(gap, value=1.0 / gap.value, unit="1/s")
        left.append(f"the overhead per message, because {queues} queue pairs send concurrently (use -q 1)")
    elif gap is not None:
        keys["overhead"] = {"rdma": gap}
    else:
        left.append("the overhead per message, because small messages are missing (use -a)")
    shortest = gap.value if gap is not None else 0.0
    rows = [Row(f"{size:,.0f} B", "B/s", rate, size / max(shortest, size / peak)) for size, rate in sorted(runs)
            if gap is not None or size >= LARGE]  # fmt: skip
    if options.part is None and not longest:
        overhead = f", only an overhead of {quantity(gap.value, 's')}" if gap is not None else ""
        message = f"messages of up to {quantity(largest, 'B')} do not measure the bandwidth of a NIC{overhead}"
        raise logs[0].wrong(0, message, "name the NIC with --part, or run all sizes (-a)")
    notes = f"{test}, {queues} queue pair{'s' if queues > 1 else ''}; largest message {quantity(largest, 'B')}"
    if options.part is None:
        keys["protocol"] = "rdma"
    use = options.part.use if options.part else ""
    return part("perftest", "nic", f"perftest, {test}", keys, use=use, notes=notes, rows=rows, left=left)


def _read(section: Section, *, both: bool) -> list[Run]:
    log, unit = section.log, 0.0
    runs: dict[tuple[float, float], Run] = {}
    for line, text in section.lines:
        if match := _HEAD.search(text):
            name = match[1].lower()
            if name not in UNITS:
                raise log.wrong(line, f"unknown unit {match[1]}: expected {', '.join(UNITS)}")
            unit = UNITS[name]
        elif _OTHER.search(text):
            raise log.wrong(line, "latency tests of perftest are not supported", "use a bandwidth test: ib_write_bw -a")
        elif unit and (match := _ROW.match(text)):
            size = log.number(match[1], "a size", line)
            peak, mean, messages = (log.number(match[group], "a number of perftest", line, zero=True) for group in (3, 4, 5))
            if mean <= 0:
                raise log.wrong(line, "the average bandwidth is 0", "did the run fail, or was it too short?")
            if 0 < peak < 0.95 * mean:
                raise log.wrong(line, f"the peak {peak:g} is below the average {mean:g}", _HINT)
            if messages > 0 and abs(size * messages * 1e6 / (mean * unit) - 1.0) > _TOLERANCE + 0.006 / mean + 1e-6 / messages:
                message = f"{messages:g} million messages of {match[1]} B per second are not {mean:g} in the unit of the header"
                raise log.wrong(line, message, "does the file contain two logs, or another unit?")
            runs[size, mean] = Run(size, mean * unit / (2.0 if both else 1.0))
    if not runs:
        raise log.nothing("a bandwidth test of perftest", _HINT)
    return list(runs.values())
