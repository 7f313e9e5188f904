"""fio's JSON: a disk.

Bandwidth comes from runs that keep at least 512 KiB of blocks of 64 KiB or more under way, latency from one small random block
at a time, IOPS from many of up to 16 KiB at once. A run says none of the others: 4 KiB at a time measure no bandwidth. A run that
a `rate` or `thinktime` held back, or that the page cache may have answered (`direct=0`), measures nothing of a disk.

`bw_bytes` is B/s, `bw` KiB/s; `lat_ns` is ns, `lat` of fio 2 us. Synchronous engines ignore `iodepth`: Little's law tells how
many accesses were really under way.

Jobs run at the same time unless a `stonewall` separates them, which begins a new `groupid`. Entries of one group (processes of
`numjobs` without `group_reporting`, or several sections of the job file) share the disk. If they do the same, they are one load,
whose rates and depths add up; if they differ, none of them measures the disk.

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
from hwsim_calibrate.fit.writing import quantity
from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.log import Entry, Log
from hwsim_calibrate.logs.result import Number, Result, Row, number_of, part

_HINT: Final = "it is the output of `fio --output-format=json`"
DIRECTIONS: Final = ("read", "write")
LARGE: Final = 64 * 1024.0  # bytes of a block from which a run may measure a bandwidth
FLYING: Final = 512 * 1024.0  # bytes under way, below which the latency sets the rate
SMALL: Final = 16 * 1024.0  # bytes of a block up to which accesses, not bytes, are counted
QUEUED: Final = 0.6  # of the depth that was asked for, below which the engine ignored it
LIMITED: Final = 1.2  # latency at depth over latency alone, below which the disk would take more at once
CACHED: Final = 1.0  # standard deviation of the logarithm, where the page cache may have answered
HOLDS: Final = ("rate", "rate_iops", "thinktime", "latency_target")  # options that hold a run back
SYNCS: Final = ("fsync", "fdatasync", "sync")  # options by which writes wait for the medium
LATER: Final = ("wait_for", "startdelay")  # options by which a job begins after others of its group
MIXES: Final = ("rw", "readwrite", "randrw")
APART: Final = "`stonewall` runs jobs one after another"
_BLOCK: Final = re.compile(r"(\d{1,9})([kmg]?)(?:i?b)?")
LATE: Final = 2.0  # seconds that the times of processes are off by: whole ones, from the start to the last line
TOGETHER: Final = 1.05  # longest over shortest run time of jobs, and largest over smallest block, up to which they are one load


@dataclass(frozen=True, slots=True)
class Run:
    """A job in one direction; of a mix, both together.

    Args:
        size: bytes of a block. rate: B/s. iops: accesses a second. latency: seconds of one; 0: not said.
        depth: accesses under way. reads: their share, if it is a mix. cached: whether it does not say `direct=1`.
        lasts: seconds; 0: not said. why: why it measures nothing of a disk, "" if it does.
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
    lasts: float = 0.0
    why: str = ""

    def __str__(self) -> str:
        return f"{self.job}: {self.direction}{f', {self.depth} at once' if self.depth > 1 else ' at depth 1'}"


def fit(logs: Sequence[Log], ask: Ask) -> Result:
    """The simplest disk that has these numbers."""
    left: list[str] = []
    runs = [run for log in logs for run in _runs(log, left)]
    spans = sorted((span for log in logs for span in _spans(log)), key=lambda span: span[:2])
    for (_, end, one), (start, _, other) in pairwise(spans):
        if start < end - LATE:
            raise other.wrong(0, f"its jobs ran while those of {one.name} did", "runs that shared a disk measure none of it")
    return disk_of("fio", logs[0], runs, left, ask, "a run of `rw=read bs=1m`")


def _spans(log: Log) -> Iterator[tuple[float, float, Log]]:
    """(seconds of the start, of the end) of each process of fio, where the log has them."""
    for content in log.jsons("jobs", "client_stats", tool="fio", hint=_HINT):
        jobs = content.need("jobs", "client_stats").elements()
        lasted = max((each.number(zero=True) for job in jobs if (each := job.get("elapsed"))), default=0.0)
        if lasted and (end := content.get("timestamp_ms")) is not None:
            yield end.number() / 1e3 - lasted, end.number() / 1e3, log


def disk_of(tool: str, log: Log, runs: Sequence[Run], left: list[str], ask: Ask, more: str) -> Result:
    """The disk that these runs measure; left: what they leave out. more: the run that measures the bandwidth of reading.

    Raises:
        SpecError: they measure none, and no part was named.
    """
    base = ask.part.as_a(Disk, tool) if ask.part is not None else None
    keys: dict[str, Any] = {}
    rows: list[Row] = []
    for direction, latency, most in (("read", "latency", "iops"), ("write", "write_latency", "write_iops")):
        some = [run for run in runs if run.direction == direction]
        if streams := [run for run in some if run.size >= LARGE and run.size * run.depth >= FLYING]:
            keys[direction] = _fastest(streams)
            rows += [Row(str(run), "B/s", run.rate, keys[direction].value) for run in streams]
        alone = [run for run in some if run.random and run.depth <= 1 and run.latency > 0]
        rate = _rate(keys, direction, base)
        waits = [run.latency - run.size / rate for run in alone if run.size <= min(each.size for each in alone)]
        if waits and min(waits) > 0:
            keys[latency] = waited = _doubted(number_of(waits, "s"), alone)
            rows += [Row(str(run), "s", run.latency, waited.value + run.size / rate) for run in alone]
        elif alone:
            left.append(f"{alone[0]}: {quantity(alone[0].latency, 's')}, no longer than its bytes take: no latency")
        deep = [run for run in some if run.random and run.depth > 1 and run.size <= SMALL]
        for run in [run for run in deep if alone and run.latency < LIMITED * min(each.latency for each in alone)]:
            left.append(f"{run}: {run.iops:,.0f} a second, and not slower than alone: the disk would do more")
            deep.remove(run)
        if deep and (most == "iops" or "iops" in keys or (base is not None and base.iops)):
            keys[most] = _most(deep)
            if not alone:
                keys[most] = replace(
                    keys[most], note="at least: no run of one at a time tells whether more at once would be more"
                )
            rows += [Row(str(run), "1/s", run.iops, keys[most].value) for run in deep]
        elif deep:
            left.append("IOPS of writing, without IOPS of reading")
        used = [*streams, *alone, *deep]
        left += [f"{run}: {quantity(run.size, 'B')} each, {quantity(run.rate, 'B/s')}: neither a bandwidth nor IOPS"
                 for run in some if run not in used and f"{run}:" not in "".join(left)]  # fmt: skip
    keys, rows, mixes = _with_mixes(keys, rows, [run for run in runs if run.direction == "mixed"])
    left += mixes
    depth = max((run.depth for run in runs if run.random and run.direction != "write" and "iops" in keys), default=1)
    keys |= {"queue": depth} if depth > 1 else {}
    left += [f"{run}: direct=1 is not among its options: the page cache may have answered" for run in runs if run.cached]
    if not keys or (base is None and "read" not in keys):
        had = "; ".join(f"{name} {quantity(each.value, each.unit)}" for name, each in keys.items() if isinstance(each, Number))
        why = f"no run of {tool} in it measures the bandwidth of reading" + (f": it has {had}" if had else "")
        hint = "; ".join([f"--part NAME: the disk that {'they go' if had else 'it goes'} into, or add {more}", *left])
        raise log.wrong(0, why, hint)
    use = ask.part.use if ask.part else ""
    return part(tool, "disk", f"{tool}, {len({run.job for run in runs})} jobs", keys, use=use, rows=rows, left=left)


def _rate(keys: Mapping[str, Any], direction: str, base: Disk | None) -> float:
    """B/s of a direction; without limit where it is not known."""
    if (found := keys.get(direction) or keys.get("read")) is not None:
        return float(found.value)
    if base is None:
        return math.inf
    return base.write_bandwidth or base.read_bandwidth if direction == "write" else base.read_bandwidth


def _with_mixes(keys: dict[str, Any], rows: list[Row], mixes: Sequence[Run]) -> tuple[dict[str, Any], list[Row], list[str]]:
    """With what reads and writes together tell: accesses in all, where no run of reads alone does."""
    deep = [run for run in mixes if run.random and run.depth > 1 and run.size <= SMALL and not {"iops", "write_iops"} & set(keys)]
    if deep:
        best = max(deep, key=lambda run: run.iops)
        number = replace(_most(deep), note=f"reads and writes together, {percent(best.reads, '.0f')} of them reads")
        keys, rows = keys | {"iops": number}, [*rows, *(Row(str(run), "1/s", run.iops, number.value) for run in deep)]
    others = [f"{run}: {run.iops:,.0f} a second of reads and writes together: neither alone" for run in mixes if run not in deep]
    return keys, rows, others


def _fastest(runs: Sequence[Run]) -> Number:
    """B/s of the fastest kind of job; its interval by repeats of that kind."""
    best = max(runs, key=lambda run: run.rate)
    alike = [run for run in runs if (run.random, run.size, run.depth) == (best.random, best.size, best.depth)]
    return _doubted(number_of([run.rate for run in alike], "B/s"), alike)


def _most(runs: Sequence[Run]) -> Number:
    """The most accesses a second of different depths; the interval by those within a tenth of it."""
    most = max(run.iops for run in runs)
    return _doubted(number_of([run.iops for run in runs if run.iops >= 0.9 * most], "1/s"), runs)


def _doubted(number: Number, runs: Sequence[Run]) -> Number:
    return replace(number, repeats=CACHED) if any(run.cached for run in runs) else number


def _runs(log: Log, left: list[str]) -> list[Run]:
    if re.match(r"^\d+;fio", log.text.lstrip()):
        raise log.wrong(1, "fio's terse output, whose columns differ by version", _HINT)
    groups: dict[tuple[int, object, int], list[Run]] = {}
    late, last, hosts, devices = "", "", set[str](), set[str]()
    for number, content in enumerate(log.jsons("jobs", "client_stats", tool="fio", hint=_HINT)):
        shared, walls = content.get("global options"), 0
        for job in content.need("jobs", "client_stats").elements():
            if (failed := job.get("error")) is not None and failed.value != 0:
                raise log.wrong(failed.line, f"the job ended with error {failed.text()}", "its numbers are not used")
            options = {
                key: value for each in (shared, job.get("job options")) if each is not None and isinstance(each.value, dict)
                for key, value in each.value.items()
            }  # fmt: skip
            name, group, host = (each.text() if (each := job.get(key)) else "" for key in ("jobname", "groupid", "hostname"))
            walls += "stonewall" in options and name != last
            last = name
            if name != "All clients" and (run := _of_job(job, name or "a job", options)) is not None:
                hosts |= {host}
                devices |= {each for each in str(options.get("filename", "")).split(":") if each.startswith("/dev/")}
                groups.setdefault((number, group, walls), []).append(run)
                late = next((key for key in LATER if key in options), late)
    for several, what in ((hosts, "on hosts"), (devices, "on devices")):
        if len(several) > 1:
            raise log.wrong(0, f"its jobs ran {what} {' and '.join(sorted(several))[:80]}", "a part is one disk: a log for each")
    runs = [_together(runs_of_group, late) for runs_of_group in groups.values()]
    left += [f"{run.job}: {run.why}" for run in runs if run.why]
    return [run for run in runs if not run.why]


def _together(runs: Sequence[Run], late: str) -> Run:
    """The load that jobs are which run at the same time; late: an option by which some of them begin later."""
    kinds = {(run.direction, run.random, run.why) for run in runs}
    apart = max(max(several) / min(several) for several in ([run.size for run in runs], [run.lasts or 1.0 for run in runs]))
    load = runs[0]
    for run in runs[1:]:
        load = _added(load, run)
    names = " and ".join(dict.fromkeys(run.job for run in runs))
    if len(runs) > 1 and (len(kinds) > 1 or apart > TOGETHER or late):
        why = f"`{late}`" if late else "do not the same" if len(kinds) > 1 else "blocks or run times differ"
        return replace(load, job=names, why=f"at the same time, and {why}: {APART}")
    return replace(load, job=names)


def _of_job(job: Entry, name: str, options: Mapping[str, object]) -> Run | None:
    """What a job did, in the order read, write, or both as a mix; None if it did nothing."""
    sides = [
        (direction, side)
        for direction in DIRECTIONS
        if (side := job.get(direction)) and side.need("io_bytes", "io_kbytes").number(zero=True)
    ]
    if not sides:
        return None
    holds = HOLDS + SYNCS * (sides[-1][0] == "write")
    held = [key for key in holds if str(options.get(key, "0")).replace("none", "").strip("0, ")]
    why = f"held back by {held[0]}={str(options[held[0]])[:20]}" if held else ""
    if str(options.get("direct", "1")) == "0" or str(options.get("buffered", "0")) not in ("0", ""):
        why = why or "direct=0, the page cache answered"
    depth, several = (_count(job, options.get(key, 1), key) for key in ("iodepth", "numjobs"))
    asked = depth * several if "group_reporting" in options else depth
    found = [_side(side) for _, side in sides]
    iops, rate, busy = (sum(each) for each in zip(*((a, b, a * wait) for a, b, wait in found), strict=True))
    kind = str(options.get("rw", options.get("readwrite", "read")))
    block = _BLOCK.fullmatch(str(options.get("bs", "")).lower())
    said = int(block[1]) * 1024 ** " kmg".index(block[2] or " ") if block else rate / iops
    if (len(sides) > 1 and kind not in MIXES) or not 1 / TOGETHER < rate / iops / max(said, 1) < TOGETHER:
        why = why or f"`group_reporting` adds jobs to it that do not {kind} blocks of {options.get('bs', 'its size')}: {APART}"
    return Run(
        name, sides[0][0] if len(sides) == 1 else "mixed", kind.startswith("rand"),
        asked if not busy or busy >= QUEUED * asked else max(round(busy), 1), rate / iops, rate, iops, busy / iops,
        reads=found[0][0] / iops, cached="direct" not in options, why=why,
        lasts=max(each.number(zero=True) / 1e3 if (each := side.get("runtime")) else 0.0 for _, side in sides),
    )  # fmt: skip


def _side(side: Entry) -> tuple[float, float, float]:
    """(accesses a second, B/s, seconds of an access or 0) of one direction."""
    iops, rate, latency = side.need("iops").number(), side.get("bw_bytes"), 0.0
    for names, unit in ((("lat_ns",), 1e-9), (("lat",), 1e-6), (("slat_ns", "clat_ns"), 1e-9), (("slat", "clat"), 1e-6)):
        if not latency and side.get(names[-1]) is not None:
            latency = unit * sum(each.need("mean").number(zero=True) for name in names if (each := side.get(name)) is not None)
    return iops, rate.number() if rate is not None else side.need("bw").number() * 1024.0, latency


def _added(one: Run, other: Run) -> Run:
    """Two processes that report apart."""
    iops, rate = one.iops + other.iops, one.rate + other.rate
    latency, reads = ((a * one.iops + b * other.iops) / iops for a, b in ((one.latency, other.latency), (one.reads, other.reads)))
    return replace(one, depth=one.depth + other.depth, size=rate / iops, rate=rate, iops=iops, latency=latency, reads=reads)


def _count(job: Entry, value: object, key: str) -> int:
    count = job.log.number(value, f"`{key}`", job.line)
    if count != int(count) or count > 1e6:
        raise job.log.wrong(job.line, f"`{key}` is a whole number, not {value}")
    return int(count)
