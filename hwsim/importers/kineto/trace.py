"""Read a Kineto file and convert its events to columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hwsim.importers.columns import BATCH, LONGEST, OmittedCounter, SliceColumns, all_microseconds, microseconds
from hwsim.importers.kineto import facts
from hwsim.importers.ranks import Process, joined, number_of
from hwsim.importers.recording import HOST, RecordedLane, Recording, What
from hwsim.importers.text import Entries, Report, read_each
from hwsim.records import without_collector
from hwsim.spec import SpecError

_OP, _MARK, _CALL, _KERNEL, _WAIT = map(int, (What.OP, What.MARK, What.CALL, What.KERNEL, What.WAIT))  # faster than enum members
WHAT: Final[Mapping[str, int]] = {  # category -> kind of slice; capitalized names are from PyTorch before 1.13
    "cpu_op": What.OP, "Operator": What.OP, "operator": What.OP,
    "python_function": What.PYTHON,
    "user_annotation": What.MARK,
    "cuda_runtime": What.CALL, "cuda_driver": What.CALL, "Runtime": What.CALL, "hip_runtime": What.CALL,
    "hip_driver": What.CALL, "xpu_runtime": What.CALL, "xpu_driver": What.CALL, "mtia_runtime": What.CALL,
    "privateuse1_runtime": What.CALL, "privateuse1_driver": What.CALL,
    "kernel": What.KERNEL, "Kernel": What.KERNEL, "concurrent_kernel": What.KERNEL,
    "gpu_memcpy": What.COPY, "Memcpy": What.COPY,
    "gpu_memset": What.SET, "Memset": What.SET,
    "cuda_sync": What.WAIT,
}  # fmt: skip
WHY: Final[Mapping[str, str]] = {
    "ac2g": "arrows from calls to kernels; launches are found by correlation",
    "async_cpu_to_gpu": "arrows from ops to kernels; launches are found by correlation",
    "fwdbwd": "arrows from forward to backward; the recorded times have this order",
    "gpu_user_annotation": "copies of host annotations for the GPU streams",
    "overhead": "overhead of the profiler, included in the times of the surrounding calls",
    "Trace": "the time span of the profiler",
}
PHASES: Final[Mapping[str, str]] = {
    "M": "names and order of processes and threads",
    "i": "instant events, without a duration",
    "C": "counters",
    "B": "begin events; only complete events (ph: X) are supported",
    "E": "end events; only complete events (ph: X) are supported",
}
OTHER: Final = "unknown category"
HINT: Final = "PyTorch execution traces ('nodes') have no times: record with torch.profiler and record_shapes=True"
_ARROWS: Final = frozenset({"s", "t", "f"})
_WRONG: Final = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
_NOTHING: Final[dict[str, Any]] = {}


def read(files: Sequence[Path], report: Report | None = None) -> Recording:
    """Read the ranks of one run.

    Raises:
        SpecError: a file is truncated, damaged or of another format, or two files are of one rank or of different runs.
        OSError: a file cannot be opened.
    """
    return joined("kineto", read_each(files, read_file, report))


def read_file(file: Path, report: Report | None = None) -> Process:
    """Read the file of a rank.

    Raises:
        SpecError: the file is truncated, damaged or of another format.
        OSError: the file cannot be opened.
    """
    with without_collector():
        wrong: SpecError | None = None
        for batch, form in ((BATCH, facts.EVENT), (1, None)):  # after an error, events are converted one by one to find it
            trace = _Trace(Entries(file, form, "traceEvents", "events", HINT, report), batch)
            if (wrong := trace.read()) is None:
                return trace.process()
    raise wrong or AssertionError


class _Trace:
    """A reader of one file."""

    def __init__(self, entries: Entries, batch: int) -> None:
        self.entries = entries
        self.columns, self.left = SliceColumns(all_microseconds, batch), OmittedCounter()
        self.threads: dict[Hashable, str] = {}  # names
        self.kernels: dict[str, int] = {}  # kernel name -> index of facts
        self.pids: set[int] = set()

    def read(self) -> SpecError | None:
        """Read all events; return the error of an invalid event, with its position.

        Raises:
            SpecError: the file is truncated, damaged or of another format.
        """
        take, arrows = self._take, Counter[str]()
        event: dict[str, Any] = {}
        try:
            for event in self.entries:
                phase = event.get("ph")
                if phase == "X":
                    take(event)
                elif phase in _ARROWS:  # 40 % of a file
                    arrows[event["cat"]] += 1
                else:
                    self._other(event)
            self.columns.flush()
        except SpecError:
            raise
        except _WRONG as error:
            return self.entries.wrong(_words(event, error))
        if self.entries.mended:
            why = "unescaped, as in Windows paths: read literally"
            self.left.add("backslash", why, count=self.entries.mended)
        for category, count in arrows.items():
            self.left.add(str(category), WHY.get(category, "arrows between events"), count=count)
        return None

    def _take(self, event: dict[str, Any]) -> None:
        """Add an event with a duration."""
        category, args = event.get("cat", ""), event.get("args") or _NOTHING
        kind = WHAT.get(category)
        if kind is None:
            duration = microseconds(event.get("dur", 0)) if category != "Trace" else 0
            self.left.add(str(category) or "an event", WHY.get(category, OTHER), max(0, duration))
            return
        name, columns, fact, link = event["name"], self.columns, -1, -1
        if kind <= _CALL:
            lane = columns.lanes.get((event["pid"], event["tid"]))
            if lane is None:
                lane = self._thread(event["pid"], event["tid"])
            if kind == _CALL:
                link = args.get("correlation") or -1
            elif kind == _OP:
                fact = facts.of_op(columns, args)
            elif kind == _MARK and name.startswith("nccl:"):
                fact = facts.of_op(columns, args, name)
        else:
            lane, link = self._stream(event, args), args.get("correlation") or -1
            if kind == _KERNEL:
                fact = self._kernel(name, args)
            else:
                fact = facts.of_wait(columns, args) if kind == _WAIT else facts.of_copy(columns, name, args)
        columns.add(kind, name, lane, event["ts"], event.get("dur", 0), link, fact)

    def _kernel(self, name: str, args: dict[str, Any]) -> int:
        """Return the index of the facts of a kernel, in most cases by its name only."""
        if "Collective name" in args:
            return facts.of_kernel(self.columns, name, args)
        index = self.kernels.get(name)
        if index is None:
            index = self.kernels[name] = facts.of_kernel(self.columns, name, args)
        return index

    def _other(self, event: dict[str, Any]) -> None:
        phase, name = event.get("ph"), event.get("name")
        if phase == "M":
            if name == "thread_name":
                self.threads[event.get("pid"), event.get("tid")] = str(event["args"]["name"])
            self.left.add("metadata", PHASES["M"])
        else:
            category = str(event.get("cat", "")) or str(name)[:40]
            self.left.add(category, WHY.get(category) or PHASES.get(str(phase), OTHER))

    def _thread(self, pid: int | str, tid: int | str) -> int:
        if isinstance(pid, int):
            self.pids.add(pid)
        number = tid if isinstance(tid, int) and -1 <= tid < LONGEST else -1
        return self.columns.lane_of((pid, tid), RecordedLane(f"thread {tid}", HOST, number))

    def _stream(self, event: dict[str, Any], args: dict[str, Any]) -> int:
        key = "stream", args.get("device", event.get("pid")), args.get("stream", event.get("tid"))
        lane = self.columns.lanes.get(key)
        if lane is None:
            device, stream = _number(key[1], 0), _number(key[2], -2 - len(self.columns.lanes))
            lane = self.columns.lane_of(key, RecordedLane(f"stream {stream}" if stream >= -1 else str(key[2]), device, stream))
        return lane

    def process(self) -> Process:
        """Return the process of the file."""
        rest = self.entries.rest
        distributed = rest.get("distributedInfo")
        if not isinstance(distributed, dict):
            distributed = {}
        number = distributed.get("rank")
        world = distributed.get("world_size", 0)
        lanes = self.columns.table_of_lanes
        for key, lane in self.columns.lanes.items():
            if lanes[lane].device == HOST and key in self.threads:
                lanes[lane] = RecordedLane(self.threads[key], HOST, lanes[lane].number)
        properties = rest.get("deviceProperties")
        named = {
            property_["id"]: str(property_.get("name", ""))
            for property_ in (properties if isinstance(properties, list) else ())
            if isinstance(property_, dict) and isinstance(property_.get("id"), int)
        }
        used = sorted({lane.device for lane in lanes if lane.device != HOST})
        nanoseconds = rest.get("baseTimeNanoseconds", 0)
        return Process(
            self.entries.file, number if isinstance(number, int) else number_of(self.entries.file),
            world if isinstance(world, int) else 0, str(rest.get("host_name", "")),
            tuple((device, named.get(device, "")) for device in used), self.columns, self.left,
            (nanoseconds if isinstance(nanoseconds, int) else 0) * 10**6, frozenset(self.pids),
        )  # fmt: skip


def _number(value: Any, otherwise: int) -> int:
    """Return a number, or the number at the end of a name ("stream 7")."""
    if isinstance(value, int):
        return value if value < 2**31 else -1
    found = re.search(r"(\d{1,9})$", str(value))
    return int(found[1]) if found else otherwise


def _words(event: dict[str, Any], error: Exception) -> str:
    """Return the message for an invalid event."""
    why = str(error)[:120]
    if isinstance(error, KeyError):
        why = f"missing key {error.args[0]!r}"
    elif isinstance(error, OverflowError):
        why = "a number is too large"
    elif isinstance(error, TypeError | AttributeError | RecursionError):
        why = "a value has an unexpected type"
    elif "a negative duration" in why:
        why = f"a negative duration of {ascii(event.get('dur'))[:40]} us"
    elif "invalid literal" in why:
        why = "expected a number"
    return f"event {ascii(event.get('name', ''))[:60]}: {why}"
