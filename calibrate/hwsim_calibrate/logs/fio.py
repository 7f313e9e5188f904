"""Parser of fio's JSON, which becomes a disk.

Bandwidth requires blocks of 64 KiB or more with 512 KiB in flight. Latency requires small random blocks at queue depth 1. IOPS
require blocks of up to 16 KiB at higher queue depths. Each run contributes only to the numbers that it can measure. Runs that are
throttled by `rate` or `thinktime`, or served by the page cache (`direct=0`), are omitted.

`bw_bytes` is in B/s, `bw` in KiB/s; `lat_ns` is in ns, `lat` of fio 2 in us. Synchronous engines ignore `iodepth`; Little's law
gives the real queue depth.

Jobs are concurrent unless `stonewall` separates them and starts a new `groupid`. The entries of one group share the disk.
Identical jobs are one load, whose rates and queue depths are added. Different concurrent jobs are omitted.

Source: fio's documentation, "Interpreting the output"; fio 3.0 changed us to ns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from hwsim.devices.disk import Disk
from hwsim.formats import percent
from hwsim.records import dataclass
from hwsim_calibrate.fit.machine_file import quantity
from hwsim_calibrate.logs.log import Entry, Log
from hwsim_calibrate.logs.options import LogOptions
from hwsim_calibrate.logs.result import Number, Result, Row, number_of, part

_HINT: Final = "expected the output of `fio --output-format=json`"
DIRECTIONS: Final = ("read", "write")
LARGE: Final = 64 * 1024.0  # bytes of a block from which a run can measure bandwidth
MIN_IN_FLIGHT: Final = 512 * 1024.0  # bytes in flight; below, the latency limits the rate
SMALL: Final = 16 * 1024.0  # bytes of a block up to which a run can measure IOPS
MIN_DEPTH_SHARE: Final = 0.6  # real over requested queue depth; below, the engine ignores `iodepth`
SATURATED: Final = 1.2  # latency over latency at queue depth 1; below, the disk is not saturated
CACHED: Final = 1.0  # standard deviation of the logarithm if the page cache may have served the run
THROTTLES: Final = ("rate", "rate_iops", "thinktime", "latency_target")  # options that throttle a run
SYNCS: Final = ("fsync", "fdatasync", "sync")  # options that make writes wait for the medium
DELAYS: Final = ("wait_for", "startdelay")  # options that delay a job within its group
MIXES: Final = ("rw", "readwrite", "randrw")
SEPARATE: Final = "separate the jobs with `stonewall`"
_BLOCK: Final = re.compile(r"(\d{1,9})([kmg]?)(?:i?b)?")
CLOCK_ERROR: Final = 2.0  # seconds of uncertainty of the start and end of a process
MAX_RATIO: Final = 1.05  # of run times and block sizes up to which jobs are identical


@dataclass(frozen=True, slots=True)
class Run:
    """A job in one direction, or a mix of both directions.

    Args:
        job: name of the job.
        direction: read, write or mixed.
        random: whether accesses are random.
        depth: queue depth.
        size: block size (bytes).
        rate: bandwidth (B/s).
        iops: accesses per second.
        latency: mean latency (s); 0: unknown.
        reads: share of reads.
        cached: whether the page cache may have served it, because `direct=1` is missing.
        duration_s: run time (s); 0: unknown.
        why: why it does not measure the disk; "" if it does.
    """

    job: str
    direction: str
    random: bool
    depth: int
    size: float
    rate: float
    iops: float
    latency: float
    reads: float = 1.0
    cached: bool = False
    duration_s: float = 0.0
    why: str = ""

    def __str__(self) -> str:
        return f"{self.job}: {self.direction}{f', queue depth {self.depth}' if self.depth > 1 else ', queue depth 1'}"


def fit(logs: Sequence[Log], options: LogOptions) -> Result:
    """Fit a disk."""
    left: list[str] = []
    runs = [run for log in logs for run in runs_of(log, left)]
    spans = sorted((span for log in logs for span in _spans(log)), key=lambda span: span[:2])
    for (_, end, earlier), (start, _, later) in pairwise(spans):
        if start < end - CLOCK_ERROR:
            message = f"the jobs ran at the same time as the jobs of {earlier.name}"
            raise later.wrong(0, message, "import logs of runs that had the disk to themselves")
    return fit_disk("fio", logs[0], runs, left, options, "a run of `rw=read bs=1m`")


def _spans(log: Log) -> Iterator[tuple[float, float, Log]]:
    """Yield (start in s, end in s, log) of each fio process, if the log has them."""
    for content in log.jsons("jobs", "client_stats", tool="fio", hint=_HINT):
        jobs = content.need("jobs", "client_stats").elements()
        elapsed_s = max((elapsed.number(zero=True) for job in jobs if (elapsed := job.get("elapsed"))), default=0.0)
        if elapsed_s and (end := content.get("timestamp_ms")) is not None:
            yield end.number() / 1e3 - elapsed_s, end.number() / 1e3, log


def fit_disk(tool: str, log: Log, runs: Sequence[Run], left: list[str], options: LogOptions, bandwidth_run: str) -> Result:
    """Fit a disk to runs.

    Args:
        tool: name of the tool.
        log: the first log.
        runs: runs that measure the disk.
        left: omitted information.
        options: options of the import.
        bandwidth_run: description of a run that measures the read bandwidth.

    Raises:
        SpecError: The runs do not measure a complete disk, and there is no part to complete.
    """
    base = options.part.as_a(Disk, tool) if options.part is not None else None
    keys: dict[str, Any] = {}
    rows: list[Row] = []
    for direction, latency, iops in (("read", "latency", "iops"), ("write", "write_latency", "write_iops")):
        some = [run for run in runs if run.direction == direction]
        if streams := [run for run in some if run.size >= LARGE and run.size * run.depth >= MIN_IN_FLIGHT]:
            keys[direction] = _fastest(streams)
            rows += [Row(str(run), "B/s", run.rate, keys[direction].value) for run in streams]
        alone = [run for run in some if run.random and run.depth <= 1 and run.latency > 0]
        rate = _rate(keys, direction, base)
        waits = [run.latency - run.size / rate for run in alone if run.size <= min(other.size for other in alone)]
        if waits and min(waits) > 0:
            keys[latency] = wait = _with_cache_doubt(number_of(waits, "s"), alone)
            rows += [Row(str(run), "s", run.latency, wait.value + run.size / rate) for run in alone]
        elif alone:
            left.append(f"{alone[0]}: its latency of {quantity(alone[0].latency, 's')} is not longer than its transfer time")
        deep = [run for run in some if run.random and run.depth > 1 and run.size <= SMALL]
        for run in [run for run in deep if alone and run.latency < SATURATED * min(other.latency for other in alone)]:
            left.append(f"{run}: {run.iops:,.0f} IOPS, but the latency is as at queue depth 1, so the disk is not saturated")
            deep.remove(run)
        if deep and (iops == "iops" or "iops" in keys or (base is not None and base.iops)):
            keys[iops] = _max_iops(deep)
            if not alone:
                keys[iops] = replace(keys[iops], note="a lower bound: without a run at queue depth 1, saturation is unknown")
            rows += [Row(str(run), "1/s", run.iops, keys[iops].value) for run in deep]
        elif deep:
            left.append("write IOPS, because read IOPS are missing")
        used = [*streams, *alone, *deep]
        left += [f"{run}: {quantity(run.size, 'B')} blocks, {quantity(run.rate, 'B/s')}: suitable for neither bandwidth nor IOPS"
                 for run in some if run not in used and f"{run}:" not in "".join(left)]  # fmt: skip
    keys, rows, mixes = _with_mixes(keys, rows, [run for run in runs if run.direction == "mixed"])
    left += mixes
    depth = max((run.depth for run in runs if run.random and run.direction != "write" and "iops" in keys), default=1)
    keys |= {"queue": depth} if depth > 1 else {}
    left += [f"{run}: without the option `direct=1`, the page cache may have served it" for run in runs if run.cached]
    if not keys or (base is None and "read" not in keys):
        found = "; ".join(f"{name} {quantity(key.value, key.unit)}" for name, key in keys.items() if isinstance(key, Number))
        message = f"no {tool} run measures the read bandwidth" + (f"; the log gives {found}" if found else "")
        raise log.wrong(0, message, "; ".join([f"name the disk with --part NAME, or add {bandwidth_run}", *left]))
    use = options.part.use if options.part else ""
    return part(tool, "disk", f"{tool}, {len({run.job for run in runs})} jobs", keys, use=use, rows=rows, left=left)


def _rate(keys: Mapping[str, Any], direction: str, base: Disk | None) -> float:
    """Return the bandwidth of a direction (B/s); infinite if unknown."""
    if (found := keys.get(direction) or keys.get("read")) is not None:
        return float(found.value)
    if base is None:
        return math.inf
    return base.write_bandwidth or base.read_bandwidth if direction == "write" else base.read_bandwidth


def _with_mixes(keys: dict[str, Any], rows: list[Row], mixes: Sequence[Run]) -> tuple[dict[str, Any], list[Row], list[str]]:
    """Add IOPS of mixed runs, unless runs in one direction give them."""
    deep = [run for run in mixes if run.random and run.depth > 1 and run.size <= SMALL and not {"iops", "write_iops"} & set(keys)]
    if deep:
        best = max(deep, key=lambda run: run.iops)
        number = replace(_max_iops(deep), note=f"sum of reads and writes, {percent(best.reads, '.0f')} reads")
        keys, rows = keys | {"iops": number}, [*rows, *(Row(str(run), "1/s", run.iops, number.value) for run in deep)]
    others = [f"{run}: {run.iops:,.0f} IOPS of mixed reads and writes" for run in mixes if run not in deep]
    return keys, rows, others


def _fastest(runs: Sequence[Run]) -> Number:
    """Return the bandwidth of the fastest kind of job (B/s), with the scatter of its repetitions."""
    best = max(runs, key=lambda run: run.rate)
    repeats = [run for run in runs if (run.random, run.size, run.depth) == (best.random, best.size, best.depth)]
    return _with_cache_doubt(number_of([run.rate for run in repeats], "B/s"), repeats)


def _max_iops(runs: Sequence[Run]) -> Number:
    """Return the maximum IOPS over queue depths, with the scatter of runs within 10 % of it."""
    highest = max(run.iops for run in runs)
    return _with_cache_doubt(number_of([run.iops for run in runs if run.iops >= 0.9 * highest], "1/s"), runs)


def _with_cache_doubt(number: Number, runs: Sequence[Run]) -> Number:
    return replace(number, repeats=CACHED) if any(run.cached for run in runs) else number


def runs_of(log: Log, left: list[str]) -> list[Run]:
    """Return the jobs that measure a disk; add the others to `left` with the reason."""
    if re.match(r"^\d+;fio", log.text.lstrip()):
        raise log.wrong(1, "the terse output of fio is not supported", _HINT)
    groups: dict[tuple[int, object, int], list[Run]] = {}
    delay, last, hosts, devices = "", "", set[str](), set[str]()
    for index, content in enumerate(log.jsons("jobs", "client_stats", tool="fio", hint=_HINT)):
        shared, walls = content.get("global options"), 0
        for job in content.need("jobs", "client_stats").elements():
            if (failed := job.get("error")) is not None and failed.value != 0:
                raise log.wrong(failed.line, f"the job ended with error {failed.text()}", "use the log of a successful run")
            options = {
                key: value for entry in (shared, job.get("job options")) if entry is not None and isinstance(entry.value, dict)
                for key, value in entry.value.items()
            }  # fmt: skip
            name, group, host = (entry.text() if (entry := job.get(key)) else "" for key in ("jobname", "groupid", "hostname"))
            walls += "stonewall" in options and name != last
            last = name
            if name != "All clients" and (run := _of_job(job, name or "a job", options)) is not None:
                hosts |= {host}
                devices |= {path for path in str(options.get("filename", "")).split(":") if path.startswith("/dev/")}
                groups.setdefault((index, group, walls), []).append(run)
                delay = next((key for key in DELAYS if key in options), delay)
    for names, kind in ((hosts, "hosts"), (devices, "devices")):
        if len(names) > 1:
            message = f"the jobs ran on several {kind}: {' and '.join(sorted(names))[:80]}"
            raise log.wrong(0, message, "write one log per disk")
    runs = [_merge_group(group_runs, delay) for group_runs in groups.values()]
    left += [f"{run.job}: {run.why}" for run in runs if run.why]
    return [run for run in runs if not run.why]


def _merge_group(runs: Sequence[Run], delay: str) -> Run:
    """Merge concurrent jobs into one load; delay: an option that delays some of them."""
    kinds = {(run.direction, run.random, run.why) for run in runs}
    ratio = max(max(values) / min(values) for values in ([run.size for run in runs], [run.duration_s or 1.0 for run in runs]))
    load = runs[0]
    for run in runs[1:]:
        load = _add_loads(load, run)
    names = " and ".join(dict.fromkeys(run.job for run in runs))
    if len(runs) > 1 and (len(kinds) > 1 or ratio > MAX_RATIO or delay):
        what = f"with `{delay}`" if delay else "of different kinds" if len(kinds) > 1 else "with different blocks or run times"
        return replace(load, job=names, why=f"jobs {what} ran at the same time: {SEPARATE}")
    return replace(load, job=names)


def _of_job(job: Entry, name: str, options: Mapping[str, object]) -> Run | None:
    """Return the run of a job; None if it transferred nothing."""
    sides = [
        (direction, side)
        for direction in DIRECTIONS
        if (side := job.get(direction)) and side.need("io_bytes", "io_kbytes").number(zero=True)
    ]
    if not sides:
        return None
    holds = THROTTLES + SYNCS * (sides[-1][0] == "write")
    held = [key for key in holds if str(options.get(key, "0")).replace("none", "").strip("0, ")]
    why = f"throttled by {held[0]}={str(options[held[0]])[:20]}" if held else ""
    if str(options.get("direct", "1")) == "0" or str(options.get("buffered", "0")) not in ("0", ""):
        why = why or "served by the page cache (direct=0)"
    depth, job_count = (_count(job, options.get(key, 1), key) for key in ("iodepth", "numjobs"))
    wanted = depth * job_count if "group_reporting" in options else depth
    found = [_side(side) for _, side in sides]
    iops, rate, busy = (sum(values) for values in zip(*((a, b, a * wait) for a, b, wait in found), strict=True))
    kind = str(options.get("rw", options.get("readwrite", "read")))
    block = _BLOCK.fullmatch(str(options.get("bs", "")).lower())
    configured = int(block[1]) * 1024 ** " kmg".index(block[2] or " ") if block else rate / iops
    if (len(sides) > 1 and kind not in MIXES) or not 1 / MAX_RATIO < rate / iops / max(configured, 1) < MAX_RATIO:
        why = why or f"`group_reporting` merges it with jobs other than {kind} of {options.get('bs', 'its size')}: {SEPARATE}"
    return Run(
        name, sides[0][0] if len(sides) == 1 else "mixed", kind.startswith("rand"),
        wanted if not busy or busy >= MIN_DEPTH_SHARE * wanted else max(round(busy), 1), rate / iops, rate, iops, busy / iops,
        reads=found[0][0] / iops, cached="direct" not in options, why=why,
        duration_s=max(time.number(zero=True) / 1e3 if (time := side.get("runtime")) else 0.0 for _, side in sides),
    )  # fmt: skip


def _side(side: Entry) -> tuple[float, float, float]:
    """Return (accesses per second, bandwidth in B/s, latency in s or 0) of one direction."""
    iops, rate, latency = side.need("iops").number(), side.get("bw_bytes"), 0.0
    for names, unit in ((("lat_ns",), 1e-9), (("lat",), 1e-6), (("slat_ns", "clat_ns"), 1e-9), (("slat", "clat"), 1e-6)):
        if not latency and side.get(names[-1]) is not None:
            latency = unit * sum(times.need("mean").number(zero=True) for name in names if (times := side.get(name)) is not None)
    return iops, rate.number() if rate is not None else side.need("bw").number() * 1024.0, latency


def _add_loads(one: Run, other: Run) -> Run:
    iops, rate = one.iops + other.iops, one.rate + other.rate
    latency, reads = ((a * one.iops + b * other.iops) / iops for a, b in ((one.latency, other.latency), (one.reads, other.reads)))
    return replace(one, depth=one.depth + other.depth, size=rate / iops, rate=rate, iops=iops, latency=latency, reads=reads)


def _count(job: Entry, value: object, key: str) -> int:
    count = job.log.number(value, f"`{key}`", job.line)
    if count != int(count) or count > 1e6:
        raise job.log.wrong(job.line, f"`{key}`: expected an integer, got {value}")
    return int(count)
