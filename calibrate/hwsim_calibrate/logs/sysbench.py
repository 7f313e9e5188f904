"""sysbench's tests of files and of memory: a disk, or what a cpu's memory sustains.

    Extra file open flags: directio                          reads/s:     9000.00      (1.1: read:  IOPS=9000.00 140.62 MiB/s)
    block size: 262144KiB, operation: read, scope: local     40000.00 MiB transferred (4000.00 MiB/sec)

- `fileio`: reads or writes of one block size, one under way for each thread. Without `--file-extra-flags=direct` the page cache
  may answer, and writes wait for `fsync`: such runs measure nothing of a disk.
- `memory`: each thread goes over one block again and again, word by word. A block that the caches hold measures no memory; in the
  scope `global` all threads go over the same one. Whether stores fetch their lines is not known: reads alone are taken.
- `cpu`: numbers that are tested for being prime, in a second: no number of a part.

Source: akopytov/sysbench 1.0 and 1.1, src/tests: fileio/sb_fileio.c, memory/sb_memory.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.fio import Run, disk_of
from hwsim_calibrate.logs.log import Log, Section
from hwsim_calibrate.logs.result import Result
from hwsim_calibrate.logs.sustained import Loop, memory_of

_OPENS: Final = re.compile(r"^sysbench \d|^Running the test with following options")
_ROW: Final = re.compile(r"^\s*(?:events per second:|reads/s:|read:\s+IOPS=|[\d.]+ MiB transferred \()")
FIELDS: Final = {
    "threads": r"^Number of threads: ([1-9]\d{0,5})\b", "the rate": r"^Target transaction rate: (\S+)",
    "the block size": r"(?i)^\s*block size:? (\d{1,12}(?:B|KiB|MiB|GiB))", "the operation": r"^\s*operation: (\w+)",
    "the scope": r"^\s*scope: (\w+)", "operations a second": r"^Total operations: \d+ \(\s*(\S+) per",
    "MiB a second": r"MiB transferred \(\s*(\S+) MiB/sec", "the flags": r"^Extra file open flags: *(.*)",
    "the mode": r"^Doing (.+) test", "the way": r"^Using (.+) I/O mode",
    "reads a second": r"^\s*read(?:s/s:|: +IOPS=) *(\S+)", "writes a second": r"^\s*write(?:s/s:|: +IOPS=) *(\S+)",
    "fsyncs a second": r"^\s*fsync(?:s/s:|: +IOPS=) *(\S+)", "MiB read a second": r"^\s*read(?:, MiB/s:|: +IOPS=\S+) *(\S+)",
    "MiB written a second": r"^\s*writ(?:ten, MiB/s:|e: +IOPS=\S+) *(\S+)", "the sum of latencies": r"^\s*sum: *(\S+)",
    "events": r"total number of events: *(\d+)",
}  # fmt: skip
SIZES: Final = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
SCATTERED: Final = 1e9  # B/s of a thread, below which its words may be random ones: the log does not say
SYNCED: Final = 0.01  # calls of fsync over writes, from which writes wait for them
_OFF: Final = 0.005  # of bytes a second from accesses a second times bytes
_ROUNDED: Final = 0.006
_HINT: Final = "it is what `sysbench fileio run` or `sysbench memory run` prints, of version 1.0 or later"


def fit(logs: Sequence[Log], ask: Ask) -> Result:
    """The disk of the runs of files, or the cpu that was named by the runs of memory."""
    runs: list[Run] = []
    loops: dict[Log, list[Loop]] = {log: [] for log in logs}
    left: dict[str, None] = {}
    for log in logs:
        sections = log.sections(_OPENS, _ROW)
        if not sections:
            raise log.nothing("sysbench's tests of files or memory", _HINT)
        for section in sections:
            if "events per second" in section.rows[0][1]:
                left["cpu: how many numbers are tested for being prime in a second is no number of a part"] = None
                continue
            run = _memory(section) if "transferred" in section.rows[0][1] else _files(section)
            if isinstance(run, str):
                left[run] = None
            elif isinstance(run, Loop):
                loops[log].append(run)
            else:
                runs.append(run)
    of_memory = [log for log in logs if loops[log]]
    if ask.part is not None and ask.part.kind == "cpu" and of_memory:
        left |= {f"{run}: it goes into a disk": None for run in runs}
        return memory_of("sysbench", of_memory, loops.__getitem__, _HINT, ask, tuple(left))
    if not runs:
        hint = "; ".join([*(["--part NAME: the cpu that its memory goes into"] if of_memory else []), *left])
        raise logs[0].wrong(0, "no run in it measures a disk, or the memory of a cpu that was named", hint)
    left |= {"memory: it goes into a cpu (--part)": None} if of_memory else {}
    more = "a run of --file-test-mode=seqrd --file-block-size=1M --file-extra-flags=direct"
    return disk_of("sysbench", logs[0], runs, list(left), ask, more)


def _memory(section: Section) -> Loop | str:
    """A run of memory, or why it measures none."""
    operation, scope, threads = _said(section, "the operation"), _said(section, "the scope"), int(_said(section, "threads"))
    block, rate = _block(section), _number(section, "MiB a second") * 2.0**20
    _refuse_other(section, _number(section, "operations a second"), rate)
    why = _held(section)
    if operation != "read":
        why = why or "stores may fetch their lines, or not (--memory-oper=read)"
    if threads > 1 and scope != "local":
        why = why or "all threads go over one block, and share what one of them fetched (--memory-scope=local)"
    if rate < SCATTERED * threads:
        why = why or "as slow as random words, and the log does not say whether they are"
    loop = Loop("reading", rate, 1.0, threads, block * threads, section.log, section.rows[0][0])
    return f"memory, {operation}, {_many(threads)}: {why}" if why else loop


def _files(section: Section) -> Run | str:
    """A run of files, or why it measures no disk."""
    mode, way, threads = _said(section, "the mode"), _said(section, "the way"), int(_said(section, "threads"))
    reads, writes, syncs = (_number(section, f"{name} a second") for name in ("reads", "writes", "fsyncs"))
    block, iops = _block(section), reads + writes
    _refuse_other(section, iops, sum(_number(section, f"MiB {name} a second") for name in ("read", "written")) * 2.0**20)
    waited = _number(section, "the sum of latencies") * 1e-3 / max(_number(section, "events"), 1.0)
    why = _held(section)
    if way != "synchronous":
        why = why or f"{way}: how many accesses are under way is not in the log (--file-io-mode=sync)"
    if "direct" not in _said(section, "the flags"):
        why = why or "the page cache may have answered (--file-extra-flags=direct)"
    if syncs > SYNCED * writes > 0:
        why = why or "writes wait for fsync (--file-fsync-freq=0 --file-fsync-end=off)"
    run = Run(
        f"{mode}, {_many(threads)}", "mixed" if reads and writes else "read" if reads else "write", mode.startswith("random"),
        threads, block, iops * block, iops, waited, reads / iops,
    )  # fmt: skip
    return f"{run.job}: {why}" if why else run


def _held(section: Section) -> str:
    rate = _said(section, "the rate", optional=True)
    return f"held back to {rate} (--rate)" if rate else ""


def _block(section: Section) -> float:
    said = _said(section, "the block size")
    count = said.rstrip("BKMGi")
    return section.log.number(count, "the block size", section.rows[0][0]) * SIZES[said[len(count) :]]


def _many(threads: int) -> str:
    return f"{threads} thread{'s' if threads > 1 else ''}"


def _refuse_other(section: Section, count: float, rate: float) -> None:
    """Refuse bytes a second that are not accesses a second times bytes of a block; both have two decimals."""
    computed = count * _block(section)
    if abs(computed - rate) > _OFF * rate + _ROUNDED * (_block(section) + 2.0**20) or rate <= 0 or count <= 0:
        message = f"accesses a second times the block size are {computed / 2.0**20:.6g} MiB/s, not {rate / 2.0**20:.6g}"
        raise section.log.wrong(section.rows[0][0], message, "two logs in one file, or a run too short?")


def _number(section: Section, name: str) -> float:
    return section.log.number(_said(section, name), name, section.rows[0][0], zero=True)


def _said(section: Section, name: str, *, optional: bool = False) -> str:
    """A field of a run.

    Raises:
        SpecError: no line has it.
    """
    found = next((found for _, text in section.lines if (found := re.search(FIELDS[name], text))), None)
    if found is None and not optional:
        raise section.log.wrong(section.rows[0][0], f"the run does not say {name}", "is it cut off, or of another version?")
    return found[1].strip() if found else ""
