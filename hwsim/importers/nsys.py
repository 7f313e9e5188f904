"""Reader of Nsight Systems reports (`nsys export --type sqlite`). Each process that used a GPU is a rank.

Times are whole nanoseconds. Correlation ids of kernels and calls are unique within a process, not within a file. Empty tables are
missing from a file, and older versions have fewer columns.
"""

from __future__ import annotations

import re
import sqlite3
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final

from hwsim.importers.collectives import of_kernel
from hwsim.importers.columns import NS, OmittedCounter, RecordingTooLong, SliceColumns
from hwsim.importers.ranks import Process, joined, number_of
from hwsim.importers.recording import HOST, RecordedLane, Recording, SliceFacts, What
from hwsim.importers.text import Report, damaged, read_each
from hwsim.spec import SpecError

_MAGIC: Final = b"SQLite format 3\0"
_PROCESS: Final = 24  # bits of the thread in a global id
_CUPTI: Final = "CUPTI_ACTIVITY_KIND_"
_WAYS: Final = {1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
_SYNCS: Final = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}  # as CUPTI numbers them
_RANGE: Final = 59  # NVTX push/pop ranges, which nest
_OP: Final = re.compile(r"(?P<name>[\w:.]+), (?:op_id|seq|sizes|input_op_ids) = ")  # torch.autograd.profiler.emit_nvtx
_SIZES: Final = re.compile(r"sizes = (\[[\[\], \d]*\])")
_NAMES: Final = {"StringIds", "TARGET_INFO_GPU", "ThreadNames"}
_TAKEN: Final = {
    _CUPTI + name for name in ("KERNEL", "MEMCPY", "MEMSET", "RUNTIME", "SYNCHRONIZATION", "CUDA_EVENT", "GRAPH_TRACE")
}


def read(files: Sequence[Path], report: Report | None = None) -> Recording:
    """Read the processes of one run.

    Raises:
        SpecError: a file is no Nsight Systems SQLite, or is damaged.
        OSError: a file cannot be opened.
    """
    return joined("nsys", [process for processes in read_each(files, _read_file, report) for process in processes])


def _read_file(file: Path, report: Report | None) -> list[Process]:
    with file.open("rb") as raw:
        head = raw.read(16)
    if not head:
        raise damaged(file, "the file is empty")
    if head != _MAGIC:
        hint = (
            "for PyTorch profiles: `hwsim import kineto`" if head.lstrip()[:1] in (b"{", b"[") or head[:2] == b"\x1f\x8b" else ""
        )
        raise damaged(file, "expected an SQLite export of Nsight Systems", hint or f"nsys export --type sqlite {file.name}")
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as base:
        base.text_factory = lambda text: text.decode("utf-8", "backslashreplace")
        try:
            processes = _Report(file, base).processes()
            if report is not None:
                report(file.stat().st_size, file.stat().st_size)
            return processes
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the message of SQLite may quote bytes that are no text
            why = "a name is not valid text" if isinstance(error, UnicodeDecodeError) else str(error)
            raise damaged(file, f"the database is damaged: {why}", "copy or export it again") from None


class _Report:
    """A reader of one file."""

    def __init__(self, file: Path, base: sqlite3.Connection) -> None:
        self.file, self.base, self.left = file, base, OmittedCounter()
        tables = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        self.columns = {name: {row[1] for row in base.execute(f'PRAGMA table_info("{_quoted(name)}")')} for name in tables}
        self.names: dict[int, str] = dict(self._rows("StringIds", "id", "value"))
        self.seen: dict[int, _Seen] = {}

    def _rows(self, table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a table, with None for missing columns; nothing if the table is missing."""
        if table not in self.columns:
            return iter(())
        chosen = ", ".join(f'"{name}"' if name in self.columns[table] else "NULL" for name in columns)
        return self.base.execute(f'SELECT {chosen} FROM "{table}"')

    def processes(self) -> list[Process]:
        """Return the processes that used a GPU, or all processes if none did."""
        if not (_TAKEN | {"NVTX_EVENTS"}) & set(self.columns):
            raise damaged(self.file, "no table of CUPTI or NVTX in the file", "was the program profiled with --trace=cuda,nvtx?")
        work: dict[str, tuple[What, tuple[str, ...], Callable[..., tuple[str, SliceFacts | None]]]] = {
            "KERNEL": (What.KERNEL, ("demangledName", "shortName", "nameId"), self._kernel),
            "GRAPH_TRACE": (What.KERNEL, ("graphId",), lambda graph: (f"CUDA graph {graph}", None)),
            "MEMCPY": (What.COPY, ("bytes", "copyKind"), _copy),
            "MEMSET": (What.SET, ("bytes",), lambda size: ("Memset", SliceFacts(bytes=int(size or 0)))),
        }
        steps: Mapping[str, Callable[[], None]] = {
            _CUPTI + "RUNTIME": self._calls, "NVTX_EVENTS": self._ranges,
            **{_CUPTI + table: partial(self._on_gpu, table, *spec) for table, spec in work.items()},
            _CUPTI + "SYNCHRONIZATION": self._waits,
        }  # fmt: skip
        for table, step in steps.items():
            try:
                step()
                for seen in self.seen.values():
                    seen.columns.flush()
            except SpecError:
                raise
            except (TypeError, ValueError, OverflowError) as error:
                why = (
                    str(error)
                    if isinstance(error, RecordingTooLong) or "negative" in str(error)
                    else "an invalid or too large number"
                )
                raise damaged(self.file, f"table {table}: {why}") from None
        self._left_out(set(steps))
        if not self.seen:
            raise damaged(self.file, "no known event in the file", "was the program profiled with --trace=cuda,nvtx?")
        epoch = next((row[0] for row in self._rows("TARGET_INFO_SESSION_START_TIME", "utcEpochNs")), 0)
        gpus = {number: str(name) for number, name in self._rows("TARGET_INFO_GPU", "id", "name")}
        host = next((value for name, value in self._rows("TARGET_INFO_SYSTEM_ENV", "name", "value") if name == "Hostname"), "")
        kept = {pid: seen for pid, seen in self.seen.items() if seen.devices} or self.seen
        for pid in self.seen.keys() - kept.keys():
            self.left.add(f"process {pid & 0xFFFFFF}", "the process used no GPU", 0, len(self.seen[pid].columns))
        order = sorted(kept, key=lambda pid: (min(kept[pid].devices, default=0), pid))
        named = {tid: self.names.get(name, "") for name, tid in self._rows("ThreadNames", "nameId", "globalTid")}
        first = number_of(self.file) if len(order) == 1 else None
        return [
            kept[pid].process(
                self.file, first, str(host or ""), gpus, self.left if pid == order[0] else OmittedCounter(),
                epoch * NS if isinstance(epoch, int) else 0, named,
            )
            for pid in order
        ]  # fmt: skip

    def _of(self, pid: int | None) -> _Seen:
        """Return a process by id; old versions have no id, which is unambiguous if there is only one process."""
        if pid is None and len(self.seen) > 1:
            raise damaged(self.file, "the file has several processes, but no process ids of kernels",
                          "export it with a newer version of Nsight Systems")  # fmt: skip
        key = next(iter(self.seen), 0) if pid is None else pid >> _PROCESS
        return self.seen.get(key) or self.seen.setdefault(key, _Seen())

    def _name(self, *numbers: Any) -> str:
        return next((self.names[number] for number in numbers if number in self.names), "")

    def _calls(self) -> None:
        rows = self._rows(_CUPTI + "RUNTIME", "start", "end", "globalTid", "correlationId", "nameId")
        for start, end, tid, link, name in rows:
            seen = self._of(tid)
            called = re.sub(r"_v\d+$", "", self._name(name))  # cudaLaunchKernel_v7000
            seen.columns.add(What.CALL, called, seen.thread(tid), start, end - start, link or -1)

    def _ranges(self) -> None:
        rows = self._rows("NVTX_EVENTS", "start", "end", "eventType", "text", "textId", "globalTid")
        for start, end, kind, text, number, tid in rows:
            if kind != _RANGE or end is None or tid is None:
                why = "NVTX marks and start/end ranges, which may not nest" if kind != _RANGE else "NVTX ranges without an end"
                self.left.add("NVTX_EVENTS", why, (end - start) * NS if end is not None and start is not None else 0)
                continue
            name, seen = text or self._name(number), self._of(tid)
            op = _OP.match(name)
            fact = seen.sizes(name) if op else -1
            seen.columns.add(
                What.OP if op else What.MARK, op["name"] if op else name, seen.thread(tid), start, end - start, -1, fact
            )

    def _on_gpu(self, table: str, what: What, columns: Sequence[str], told: Callable[..., tuple[str, SliceFacts | None]]) -> None:
        """Read the rows of GPU work; told: function that returns the name and facts for the additional columns."""
        wanted = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", *columns)
        for start, end, device, stream, link, pid, *more in self._rows(_CUPTI + table, *wanted):
            seen, (name, facts) = self._of(pid), told(*more)
            fact = -1 if facts is None else seen.columns.fact(facts)
            seen.columns.add(what, name, seen.stream(device, stream), start, end - start, link or -1, fact)

    def _kernel(self, *numbers: Any) -> tuple[str, SliceFacts | None]:
        name = self._name(*numbers)
        collective = of_kernel(name) if "ccl" in name else None
        return name, None if collective is None else SliceFacts(collective=collective)

    def _waits(self) -> None:
        """Read synchronizations; each waits for the latest preceding record of its event."""
        records: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for pid, event, link, stream in self._rows(_CUPTI + "CUDA_EVENT", "globalPid", "eventId", "correlationId", "streamId"):
            if link is not None and event is not None:
                records[id(self._of(pid)), event].append((link, stream))
        for rows in records.values():
            rows.sort()
        wanted = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "syncType", "eventId")
        for start, end, device, stream, link, pid, kind, event in self._rows(_CUPTI + "SYNCHRONIZATION", *wanted):
            seen = self._of(pid)
            before = records.get((id(seen), event), [])
            at = bisect_left(before, (link or 0, -1))
            record, source = before[at - 1] if at else (-1, -1)
            facts = SliceFacts(waits_on_stream=_stream(source), waits_on_link=record, kind=_SYNCS.get(kind, ""))
            lane = seen.stream(device, stream)
            seen.columns.add(What.WAIT, facts.kind or "Sync", lane, start, end - start, link or -1, seen.columns.fact(facts))

    def _left_out(self, taken: set[str]) -> None:
        for table, columns in self.columns.items():
            if table in taken or not {"start", "end"} <= columns:
                continue
            are_times = """typeof("start") = 'integer' AND typeof("end") = 'integer' AND "end" > "start\""""
            length = f'sum(CASE WHEN {are_times} THEN "end" - "start" ELSE 0 END)'
            query = f'SELECT count(*), {length} FROM "{_quoted(table)}"'  # invalid times count as 0
            count, spent = self.base.execute(query).fetchone()
            if count:
                self.left.add(table, "table not supported", int(spent or 0) * NS, count)


class _Seen:
    """The slices of one process while its file is read."""

    def __init__(self) -> None:
        self.columns = SliceColumns(_nanoseconds)
        self.devices: set[int] = set()

    def thread(self, tid: int) -> int:
        number = tid & (1 << _PROCESS) - 1
        return self.columns.lane_of(tid, RecordedLane(f"thread {number}", HOST, number))

    def stream(self, device: int | None, stream: int | None) -> int:
        number, gpu = _stream(stream), device or 0
        if not isinstance(gpu, int):
            raise TypeError("expected a whole number as device id")
        self.devices.add(gpu)
        return self.columns.lane_of(("stream", gpu, number), RecordedLane(f"stream {number}", gpu, number))

    def sizes(self, text: str) -> int:
        """Return the index of the facts of an op whose range name contains its shapes."""
        match = _SIZES.search(text)
        if match is None or len(match[1]) > 1 << 16:
            return -1
        from json import loads

        from hwsim.importers.kineto.facts import shapes

        try:
            return self.columns.fact(SliceFacts(shapes(loads(match[1]))), ("sizes", match[1]))
        except (ValueError, RecursionError):
            return -1

    def process(
        self, file: Path, number: int | None, host: str, gpus: Mapping[int, str], left: OmittedCounter, epoch: int,
        named: Mapping[int, str],
    ) -> Process:  # fmt: skip
        lanes = self.columns.table_of_lanes
        for key, lane in self.columns.lanes.items():
            if isinstance(key, int) and named.get(key):
                lanes[lane] = RecordedLane(named[key], HOST, lanes[lane].number)
        pids = frozenset(key >> _PROCESS & 0xFFFFFF for key in self.columns.lanes if isinstance(key, int))
        devices = tuple((device, gpus.get(device, "")) for device in sorted(self.devices))
        return Process(file, number, 0, host, devices, self.columns, left, epoch, pids)


def _copy(size: Any, kind: Any) -> tuple[str, SliceFacts]:
    way = _WAYS.get(kind, "")
    return f"Memcpy {way}".rstrip(), SliceFacts(bytes=int(size or 0), kind=way)


def _stream(number: Any) -> int:
    return number if isinstance(number, int) and 0 <= number < 2**31 else -1


def _nanoseconds(values: Sequence[int]) -> list[int]:
    if set(map(type, values)) != {int}:
        raise ValueError("expected a whole number as time")
    return [value * NS for value in values]


def _quoted(name: str) -> str:
    return name.replace('"', '""')
