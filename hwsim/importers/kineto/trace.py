"""One file of Kineto: its events become columns as they are read."""

from __future__ import annotations

import gc
import re
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from hwsim.importers.columns import Allocations, Columns, LeftOut, microseconds
from hwsim.importers.kineto import facts
from hwsim.importers.ranks import Process, number_of
from hwsim.importers.recording import HOST, Lane, What
from hwsim.importers.text import Entries, Report

WHAT: Final[Mapping[str, What]] = {  # the names with capital letters are of PyTorch before 1.13
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
    "fwdbwd": "arrows from forward to backward; autograd's order is in the times",
    "gpu_user_annotation": "annotations of the host, drawn again over the streams",
    "overhead": "overhead of the profiler itself; it is in the times of the calls around it",
    "Trace": "the span of the profiler",
}
PHASES: Final[Mapping[str, str]] = {
    "M": "names and order of processes and threads",
    "i": "instants without a length",
    "C": "counters",
    "B": "a begin without an end of its own; spans are read where they are one event (ph: X)",
    "E": "an end without its begin; spans are read where they are one event (ph: X)",
}
OTHER: Final = "of a category that is not read"
HINT: Final = "a PyTorch execution trace has 'nodes': `hwsim import host`; other traces are not Kineto's"
_NOTHING: Final[dict[str, Any]] = {}


@contextmanager
def without_collector() -> Iterator[None]:
    """Suspend the collector of garbage: a reader makes many objects and no cycles, and a walk over them costs a fifth."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def read_file(file: Path, report: Report | None = None) -> Process:
    """Read a rank.

    Raises:
        SpecError: the file is cut, damaged or of another format.
        OSError: it cannot be opened.
    """
    trace = _Trace(Entries(file, "traceEvents", "events", HINT, report))
    with without_collector():
        trace.read()
    return trace.process()


class _Trace:
    """What was read of a file."""

    def __init__(self, entries: Entries) -> None:
        self.entries = entries
        self.columns, self.left, self.allocations = Columns(), LeftOut(), Allocations()
        self.threads: dict[Hashable, str] = {}  # names
        self.kernels: dict[str, int] = {}  # facts by name
        self.pids: set[int] = set()

    def read(self) -> None:
        """Take every event.

        Raises:
            SpecError: an event that makes no sense, with its place.
        """
        take, other = self._take, self._other
        event: dict[str, Any] = {}
        try:
            for event in self.entries:
                if event.get("ph") == "X":
                    take(event)
                else:
                    other(event)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            if type(error).__name__ == "SpecError":
                raise
            raise self.entries.wrong(f"event {str(event.get('name', ''))[:60]!r}: {_words(error)}") from error

    def _take(self, event: dict[str, Any]) -> None:
        """An event with a length."""
        category, args = event.get("cat", ""), event.get("args") or _NOTHING
        start, duration = microseconds(event["ts"]), microseconds(event.get("dur", 0))
        if duration < 0:
            raise ValueError(f"a negative duration of {event['dur']} us")
        what = WHAT.get(category)
        if what is None:
            self.left.add(str(category) or "an event", WHY.get(category, OTHER), duration if category != "Trace" else 0)
            return
        name, columns, fact, link = event["name"], self.columns, -1, -1
        if what < What.CALL:
            lane = self._thread(event)
            if what == What.OP:
                fact = facts.of_op(columns, args)
            elif what == What.MARK and name.startswith("nccl:"):
                fact = facts.of_mark(columns, name, args)
        elif what == What.CALL:
            lane, link = self._thread(event), args.get("correlation", 0) or -1
        else:
            lane, link = self._stream(event, args), args.get("correlation", 0) or -1
            if what == What.KERNEL:
                fact = self.kernels.get(name, -2) if "Collective name" not in args else -2
                if fact == -2:
                    fact = facts.of_kernel(columns, name, args)
                    if "Collective name" not in args:
                        self.kernels[name] = fact
            else:
                fact = facts.of_wait(columns, args) if what == What.WAIT else facts.of_copy(columns, name, args)
        columns.add(what, name, lane, start, duration, link, fact)

    def _other(self, event: dict[str, Any]) -> None:
        phase, name = event.get("ph"), event.get("name")
        if phase == "M":
            if name == "thread_name":
                self.threads[event.get("pid"), event.get("tid")] = str(event["args"]["name"])
            self.left.add("metadata", PHASES["M"])
        elif phase == "i" and name == "[memory]":
            args = event["args"]
            is_gpu = args.get("Device Type", 0) != 0
            device = int(args.get("Device Id", 0)) if is_gpu else HOST
            self.allocations.add(microseconds(event["ts"]), args["Bytes"], args.get("Total Allocated", 0), device)
        else:
            category = str(event.get("cat", "")) or str(name)[:40]
            self.left.add(category, WHY.get(category) or PHASES.get(str(phase), OTHER))

    def _thread(self, event: dict[str, Any]) -> int:
        key = event.get("pid", 0), event.get("tid", 0)
        lane = self.columns.lanes.get(key)
        if lane is None:
            pid, tid = key
            if isinstance(pid, int):
                self.pids.add(pid)
            lane = self.columns.lane_of(key, Lane(f"thread {tid}", HOST, tid if isinstance(tid, int) else -1))
        return lane

    def _stream(self, event: dict[str, Any], args: dict[str, Any]) -> int:
        key = "stream", args.get("device", event.get("pid")), args.get("stream", event.get("tid"))
        lane = self.columns.lanes.get(key)
        if lane is None:
            device, stream = _number(key[1], 0), _number(key[2], -2 - len(self.columns.lanes))
            lane = self.columns.lane_of(key, Lane(f"stream {stream}" if stream >= -1 else str(key[2]), device, stream))
        return lane

    def process(self) -> Process:
        """The rank, as far as one file says."""
        rest = self.entries.rest
        told = rest.get("distributedInfo")
        distributed: dict[str, Any] = told if isinstance(told, dict) else {}
        number = distributed.get("rank")
        world = distributed.get("world_size", 0)
        lanes = self.columns.table_of_lanes
        for key, lane in self.columns.lanes.items():
            if lanes[lane].device == HOST and key in self.threads:
                lanes[lane] = Lane(self.threads[key], HOST, lanes[lane].number)
        properties = rest.get("deviceProperties")
        named = {
            each["id"]: str(each.get("name", ""))
            for each in (properties if isinstance(properties, list) else ())
            if isinstance(each, dict) and isinstance(each.get("id"), int)
        }
        used = sorted({lane.device for lane in lanes if lane.device != HOST})
        nanoseconds = rest.get("baseTimeNanoseconds", 0)
        return Process(
            self.entries.file, number if isinstance(number, int) else number_of(self.entries.file),
            world if isinstance(world, int) else 0, str(rest.get("host_name", "")),
            tuple((device, named.get(device, "")) for device in used), self.columns, self.allocations, self.left,
            (nanoseconds if isinstance(nanoseconds, int) else 0) * 10**6, frozenset(self.pids),
        )  # fmt: skip


def _number(value: Any, otherwise: int) -> int:
    """A number, or the one that a name ends with ("stream 7")."""
    if isinstance(value, int):
        return value if value < 2**31 else -1
    found = re.search(r"(\d{1,9})$", str(value))
    return int(found[1]) if found else otherwise


def _words(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it has no {error.args[0]!r}"
    if isinstance(error, OverflowError):
        return "its time is more than an hour from the first event's, or a number is too large"
    return str(error)[:120]
