"""fio's JSON: a disk.

Bandwidth from the fastest blocks, latency from one small block at a time, IOPS from many at once. `bw_bytes` is B/s, `bw` KiB/s;
`lat_ns` is ns, `lat` of fio 2 us. Without `group_reporting` each process of a job has an entry of its own: they add up.

Source: fio's documentation, "Interpreting the output"; fio 3.0 changed us to ns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from hwsim.records import dataclass
from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.log import Entry, Log
from hwsim_calibrate.logs.result import Number, Result, Row, number_of, part

_HINT: Final = "it is the output of `fio --output-format=json`"
DIRECTIONS: Final = ("read", "write")


@dataclass(frozen=True, slots=True)
class Run:
    """One direction of a job: bytes of a block, B/s, accesses a second, seconds of one, how many at once."""

    job: str
    direction: str
    random: bool
    depth: int
    size: float
    rate: float
    iops: float
    latency: float


def fit(logs: Sequence[Log], ask: Ask) -> Result:  # noqa: ARG001 (all tools are asked alike)
    """The simplest disk that has these numbers."""
    runs = [run for log in logs for run in _runs(log)]
    reads, writes = ([run for run in runs if run.direction == direction] for direction in DIRECTIONS)
    if not reads:
        raise logs[0].wrong(0, "no job of fio in it reads", "a disk needs the bandwidth of reading")
    keys: dict[str, Any] = {"read": _fastest(reads)} | ({"write": _fastest(writes)} if writes else {})
    rows, left = [], []
    for some, latency, most in ((reads, "latency", "iops"), (writes, "write_latency", "write_iops")):
        alone = [run for run in some if run.random and run.depth <= 1]
        deep = [run for run in some if run.random and run.depth > 1]
        if alone:
            size = min(run.size for run in alone)
            rate = max(run.rate for run in some)
            waits = [max(run.latency - size / rate, 1e-9) for run in alone if run.size <= size]
            keys[latency] = waited = number_of(waits, "s")
            rows += [
                Row(f"{run.job}: {run.direction} at depth 1", "s", run.latency, waited.value + run.size / rate) for run in alone
            ]
        if deep and (most == "iops" or "iops" in keys):
            keys[most] = number = _most([run.iops for run in deep], "1/s")
            rows += [Row(f"{run.job}: {run.direction}, {run.depth} at once", "1/s", run.iops, number.value) for run in deep]
        elif deep:
            left.append("IOPS of writing, without IOPS of reading")
    depth = max((run.depth for run in reads if run.random), default=1)
    keys |= {"queue": depth} if depth > 1 else {}
    return part("fio", "disk", f"fio, {len({run.job for run in runs})} jobs", keys, rows=rows, left=left)


def _fastest(runs: Sequence[Run]) -> Number:
    """B/s of the fastest kind of job; its interval by repeats of that kind."""
    best = max(runs, key=lambda run: run.rate)
    alike = [run.rate for run in runs if (run.random, run.size, run.depth) == (best.random, best.size, best.depth)]
    return number_of(alike, "B/s")


def _most(values: Sequence[float], unit: str) -> Number:
    """The most of different depths; the interval by those within a tenth of it."""
    most = max(values)
    return number_of([value for value in values if value >= 0.9 * most], unit)


def _runs(log: Log) -> list[Run]:
    if re.match(r"^\d+;fio", log.text.lstrip()):
        raise log.wrong(1, "fio's terse output, whose columns differ by version", _HINT)
    content = log.json("jobs", tool="fio", hint=_HINT)
    shared = content.get("global options")
    options = shared.value if shared is not None and isinstance(shared.value, dict) else {}
    runs: dict[tuple[str, str], Run] = {}
    for job in content.need("jobs").elements():
        if (failed := job.get("error")) is not None and failed.value != 0:
            raise log.wrong(failed.line, f"the job ended with error {failed.text()}", "its numbers are not used")
        for direction in DIRECTIONS:
            side = job.get(direction)
            if side is None or side.need("io_bytes", "io_kbytes").number(zero=True) <= 0:
                continue
            run = _run(job, side, direction, options)
            before = runs.get((run.job, direction))
            runs[run.job, direction] = run if before is None else _added(before, run)
    return list(runs.values())


def _run(job: Entry, side: Entry, direction: str, shared: dict[str, object]) -> Run:
    of_job = job.get("job options")
    options = {**shared, **(of_job.value if of_job is not None and isinstance(of_job.value, dict) else {})}
    name = job.get("jobname")
    rate = side.get("bw_bytes")
    iops = side.need("iops").number()
    nano, micro = side.get("lat_ns"), side.get("lat")
    latency = 1.0 / iops
    if nano is not None:
        latency = nano.need("mean").number() * 1e-9
    elif micro is not None:
        latency = micro.need("mean").number() * 1e-6
    depth, several = (_count(job, options.get(key, 1), key) for key in ("iodepth", "numjobs"))
    grouped = "group_reporting" in options
    return Run(
        name.text() if name is not None else "a job", direction,
        random=str(options.get("rw", options.get("readwrite", "read"))).startswith("rand"),
        depth=depth * several if grouped or several == 1 else depth,
        size=_bytes(job, options.get("bs", options.get("blocksize", "4k"))),
        rate=rate.number() if rate is not None else side.need("bw").number() * 1024.0, iops=iops, latency=latency,
    )  # fmt: skip


def _added(one: Run, other: Run) -> Run:
    """Two processes of a job that report apart."""
    iops = one.iops + other.iops
    latency = (one.latency * one.iops + other.latency * other.iops) / iops
    return Run(one.job, one.direction, one.random, one.depth + other.depth, one.size, one.rate + other.rate, iops, latency)


def _count(job: Entry, value: object, key: str) -> int:
    count = job.log.number(value, f"`{key}`", job.line)
    if count != int(count) or count > 1e6:
        raise job.log.wrong(job.line, f"`{key}` is a whole number, not {value}")
    return int(count)


def _bytes(job: Entry, value: object) -> float:
    """fio's sizes: k, m, g are powers of 1024; of `4k,8k` (reading, writing) the first."""
    match = re.fullmatch(r"(\d{1,15})\s*([kmg]?)i?b?(?:,.*)?", str(value)[:40].strip().lower())
    if not match or int(match[1]) == 0:
        raise job.log.wrong(job.line, f"'{str(value)[:40]}' is no size of a block")
    return float(match[1]) * 1024.0 ** " kmg".index(match[2] or " ")
