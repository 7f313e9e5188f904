"""Parser of sysbench's file and memory tests, which become a disk or the memory bandwidth of a CPU.

    Extra file open flags: directio                          reads/s:     9000.00      (1.1: read:  IOPS=9000.00 140.62 MiB/s)
    block size: 262144KiB, operation: read, scope: local     40000.00 MiB transferred (4000.00 MiB/sec)

- `fileio`: reads or writes of one block size with one access in flight per thread. Runs without `--file-extra-flags=direct`,
which
  may use the page cache, and runs with `fsync` are omitted.
- `memory`: each thread passes over one block repeatedly, word by word. Blocks that fit in the caches are refused. In the scope
  `global`, all threads use the same block. Only reads are used, because write allocate is unknown.
- `cpu`: the prime number test, which has no corresponding key.

Source: akopytov/sysbench 1.0 and 1.1, src/tests: fileio/sb_fileio.c, memory/sb_memory.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hwsim_calibrate.logs.fio import Run, fit_disk
from hwsim_calibrate.logs.log import Log, Section
from hwsim_calibrate.logs.memory_bandwidth import Loop, fit_memory
from hwsim_calibrate.logs.options import LogOptions
from hwsim_calibrate.logs.result import Result

_OPENS: Final = re.compile(r"^sysbench \d|^Running the test with following options")
_ROW: Final = re.compile(r"^\s*(?:events per second:|reads/s:|read:\s+IOPS=|[\d.]+ MiB transferred \()")
FIELDS: Final = {
    "threads": r"^Number of threads: ([1-9]\d{0,5})\b", "the rate": r"^Target transaction rate: (\S+)",
    "the block size": r"(?i)^\s*block size:? (\d{1,12}(?:B|KiB|MiB|GiB))", "the operation": r"^\s*operation: (\w+)",
    "the scope": r"^\s*scope: (\w+)", "operations per second": r"^Total operations: \d+ \(\s*(\S+) per",
    "MiB per second": r"MiB transferred \(\s*(\S+) MiB/sec", "the flags": r"^Extra file open flags: *(.*)",
    "the mode": r"^Doing (.+) test", "the way": r"^Using (.+) I/O mode",
    "reads per second": r"^\s*read(?:s/s:|: +IOPS=) *(\S+)", "writes per second": r"^\s*write(?:s/s:|: +IOPS=) *(\S+)",
    "fsyncs per second": r"^\s*fsync(?:s/s:|: +IOPS=) *(\S+)", "MiB read per second": r"^\s*read(?:, MiB/s:|: +IOPS=\S+) *(\S+)",
    "MiB written per second": r"^\s*writ(?:ten, MiB/s:|e: +IOPS=\S+) *(\S+)", "the sum of latencies": r"^\s*sum: *(\S+)",
    "events": r"total number of events: *(\d+)",
}  # fmt: skip
SIZES: Final = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
MIN_SEQUENTIAL: Final = 1e9  # B/s per thread; below, the accesses may be random, which the log does not show
MAX_SYNCS: Final = 0.01  # fsync calls over writes, above which fsync slows down the writes
_TOLERANCE: Final = 0.005  # between bytes per second and accesses per second times block size
_ROUNDED: Final = 0.006
_HINT: Final = "expected the output of `sysbench fileio run` or `sysbench memory run`, version 1.0 or later"


def fit(logs: Sequence[Log], options: LogOptions) -> Result:
    """Fit a disk to the file tests, or a CPU (--part) to the memory tests."""
    runs: list[Run] = []
    loops: dict[Log, list[Loop]] = {log: [] for log in logs}
    left: dict[str, None] = {}
    for log in logs:
        sections = log.sections(_OPENS, _ROW)
        if not sections:
            raise log.nothing("sysbench's file or memory tests", _HINT)
        for section in sections:
            if "events per second" in section.rows[0][1]:
                left["cpu: the prime number test has no corresponding key"] = None
                continue
            run = _memory(section) if "transferred" in section.rows[0][1] else _files(section)
            if isinstance(run, str):
                left[run] = None
            elif isinstance(run, Loop):
                loops[log].append(run)
            else:
                runs.append(run)
    memory_logs = [log for log in logs if loops[log]]
    if options.part is not None and options.part.kind == "cpu" and memory_logs:
        left |= {f"{run}: it belongs to a disk": None for run in runs}
        return fit_memory("sysbench", memory_logs, loops.__getitem__, _HINT, options, tuple(left))
    if not runs:
        hint = "; ".join([*(["for the memory tests, name the CPU: --part NAME"] if memory_logs else []), *left])
        raise logs[0].wrong(0, "no run measures a disk, or the memory of the CPU in --part", hint)
    left |= {"memory: it belongs to a CPU (--part)": None} if memory_logs else {}
    bandwidth_run = "a run with --file-test-mode=seqrd --file-block-size=1M --file-extra-flags=direct"
    return fit_disk("sysbench", logs[0], runs, list(left), options, bandwidth_run)


def _memory(section: Section) -> Loop | str:
    """Return a memory test as a loop, or why it does not measure the memory."""
    operation, scope, threads = _field(section, "the operation"), _field(section, "the scope"), int(_field(section, "threads"))
    block, rate = _block(section), _number(section, "MiB per second") * 2.0**20
    _check_rate(section, _number(section, "operations per second"), rate)
    why = _throttle(section)
    if operation != "read":
        why = why or "write allocate is unknown (use --memory-oper=read)"
    if threads > 1 and scope != "local":
        why = why or "all threads share one block (use --memory-scope=local)"
    if rate < MIN_SEQUENTIAL * threads:
        why = why or "the accesses may be random, because they are slow"
    loop = Loop("reading", rate, 1.0, threads, block * threads, section.log, section.rows[0][0])
    return f"memory, {operation}, {_threads(threads)}: {why}" if why else loop


def _files(section: Section) -> Run | str:
    """Return a file test as a run, or why it does not measure a disk."""
    mode, way, threads = _field(section, "the mode"), _field(section, "the way"), int(_field(section, "threads"))
    reads, writes, syncs = (_number(section, f"{name} per second") for name in ("reads", "writes", "fsyncs"))
    block, iops = _block(section), reads + writes
    _check_rate(section, iops, sum(_number(section, f"MiB {name} per second") for name in ("read", "written")) * 2.0**20)
    latency = _number(section, "the sum of latencies") * 1e-3 / max(_number(section, "events"), 1.0)
    why = _throttle(section)
    if way != "synchronous":
        why = why or f"the queue depth of {way} I/O is unknown (use --file-io-mode=sync)"
    if "direct" not in _field(section, "the flags"):
        why = why or "the page cache may have served it (use --file-extra-flags=direct)"
    if syncs > MAX_SYNCS * writes > 0:
        why = why or "writes wait for fsync (use --file-fsync-freq=0 --file-fsync-end=off)"
    run = Run(
        f"{mode}, {_threads(threads)}", "mixed" if reads and writes else "read" if reads else "write", mode.startswith("random"),
        threads, block, iops * block, iops, latency, reads / iops,
    )  # fmt: skip
    return f"{run.job}: {why}" if why else run


def _throttle(section: Section) -> str:
    rate = _field(section, "the rate", optional=True)
    return f"throttled to {rate} (--rate)" if rate else ""


def _block(section: Section) -> float:
    text = _field(section, "the block size")
    count = text.rstrip("BKMGi")
    return section.log.number(count, "the block size", section.rows[0][0]) * SIZES[text[len(count) :]]


def _threads(threads: int) -> str:
    return f"{threads} thread{'s' if threads > 1 else ''}"


def _check_rate(section: Section, count: float, rate: float) -> None:
    """Raise SpecError unless bytes per second are accesses per second times the block size; both have two decimals."""
    computed = count * _block(section)
    if abs(computed - rate) > _TOLERANCE * rate + _ROUNDED * (_block(section) + 2.0**20) or rate <= 0 or count <= 0:
        message = f"accesses per second times block size are {computed / 2.0**20:.6g} MiB/s, not {rate / 2.0**20:.6g} MiB/s"
        raise section.log.wrong(section.rows[0][0], message, "does the file contain two logs, or was the run too short?")


def _number(section: Section, name: str) -> float:
    return section.log.number(_field(section, name), name, section.rows[0][0], zero=True)


def _field(section: Section, name: str, *, optional: bool = False) -> str:
    """Return a field of a run.

    Raises:
        SpecError: The run does not have the field.
    """
    found = next((found for _, text in section.lines if (found := re.search(FIELDS[name], text))), None)
    if found is None and not optional:
        raise section.log.wrong(section.rows[0][0], f"{name} is missing", "is the log truncated, or from another version?")
    return found[1].strip() if found else ""
