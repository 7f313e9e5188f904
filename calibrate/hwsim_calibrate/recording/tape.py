"""The tape of a recording: calls in order, with their arrays and times.

Arrays are identified by the memory that they own, so a view counts as the array that owns its memory.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from hwsim.devices.work import LibraryCall
from hwsim_calibrate.clocks import Usage, usage_reader
from hwsim_calibrate.recording.operands import Array, Recency, dtype_of, identity, is_tensor, root, span

_SILENT: Final = (str(Path(np.__file__).parent), str(Path(__file__).parent), "<")  # files that are not the user's code
_PROBES: Final = 200  # calls for measuring the overhead of the clocks
_ROWS: Final = 5  # repetitions of the probes without clocks


class NoOp(Exception):
    """A call has no corresponding op; the text gives the reason."""


class RecordedArray(NamedTuple):
    """An array that appears with a call.

    Args:
        value: number of the array.
        shape: its shape.
        dtype: its number format; "" if hwsim does not support it.
        bytes: its size (bytes).
        is_new: whether the call creates it; otherwise it existed before, but no recorded call created it.
    """

    value: int
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    is_new: bool = True


@dataclass(frozen=True, slots=True)
class Described:
    """A call as an op.

    Args:
        kind: kind of op; `busy` for calls without a corresponding op.
        keys: keys of the op.
        since: bytes used since the last use of each operand.
        reason: why the kind is `busy`.
        call: the library call that the op lowers to; None if hwsim does not model it.
    """

    kind: str
    keys: Mapping[str, Any]
    since: tuple[float, ...] = ()
    reason: str = ""
    call: LibraryCall | None = None


@dataclass(frozen=True, slots=True)
class Performed:
    """A call that was executed on plain arrays.

    Args:
        name: name of the function.
        args: positional arguments.
        options: keyword arguments.
        result: the returned value.
        since: function that marks arrays as used, and returns the bytes used since the last use of each.
    """

    name: str
    args: tuple[Any, ...]
    options: Mapping[str, Any]
    result: Any
    since: Callable[..., tuple[float, ...]]

    def option(self, key: str, position: int, default: Any = None) -> Any:
        """Return an argument by its keyword or position."""
        return self.options.get(key, self.args[position] if len(self.args) > position else default)


@dataclass(frozen=True, slots=True)
class Step:
    """A recorded call.

    Args:
        name: name of the function.
        line: line of the script, or `module:line`.
        op: the corresponding op.
        reads: numbers of the arrays that it reads; None for an array that no recorded call created.
        updates: numbers of the arrays that it changes.
        made: arrays that appear with the call.
        wall: wall time (s).
        cpu: CPU time (s).
        faults: page faults.
    """

    name: str
    line: str
    op: Described
    reads: tuple[int | None, ...] = ()
    updates: tuple[int | None, ...] = ()
    made: tuple[RecordedArray, ...] = ()
    wall: float = 0.0
    cpu: float = 0.0
    faults: float = 0.0


Describe = Callable[[Performed], Described]


def _overhead() -> tuple[float, float]:
    """Return the overhead (s) of the clocks in (wall, CPU) time: single timed calls minus calls in a loop."""
    function: Callable[..., Any] = np.add
    args, options, walls, cpus = (np.ones(8), np.ones(8), np.empty(8)), dict[str, Any](), [], []
    for _ in range(_PROBES):
        cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
        function(*args, **options)
        walls.append(time.perf_counter_ns() - wall)
        cpus.append(time.thread_time_ns() - cpu)
    rows = []
    for _ in range(_ROWS):
        began = time.perf_counter_ns()
        for _ in range(_PROBES):
            function(*args, **options)
        rows.append((time.perf_counter_ns() - began) / _PROBES)
    wall_s, cpu_s = (max(float(np.median(times)) - min(rows), 0.0) * 1e-9 for times in (walls, cpus))
    return wall_s, cpu_s


class Timing(NamedTuple):
    """The time of a call, which is identified by its name and the shape of its result.

    Args:
        name: name of the function.
        shape: shape of the result.
        wall: wall time (s).
        cpu: CPU time (s).
        faults: page faults.
    """

    name: str
    shape: tuple[int, ...]
    wall: float
    cpu: float
    faults: int = 0


@dataclass(slots=True)
class Tape:
    """The calls that have been recorded so far.

    Args:
        script: file whose line numbers are stored without a file name.
        only_times: whether only times are recorded; describing the calls would evict the caches.
        times: the time of each call.
        steps: the recorded calls.
        recent: the last use of memory ranges.
        inside: depth of recorded calls in progress; calls inside them are not recorded separately.
        elsewhere: number of calls from other threads, which are not recorded.
        silent: path prefixes of files that are not the user's code.
    """

    script: str = ""
    only_times: bool = False
    times: list[Timing] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    recent: Recency = field(default_factory=Recency)
    inside: int = 0
    elsewhere: int = 0
    silent: tuple[str, ...] = _SILENT
    _numbers: dict[int, tuple[int, weakref.ref[Array] | None]] = field(default_factory=dict)  # by `identity` of the array
    _count: int = 0
    _thread: int = field(default_factory=threading.get_ident)
    _overhead: tuple[float, float] = field(default_factory=_overhead)
    _usage: Callable[[], Usage] = field(default_factory=usage_reader)

    def listens(self) -> bool:
        """Return whether a call of this thread is recorded now."""
        if threading.get_ident() != self._thread:
            self.elsewhere += 1
            return False
        return not self.inside

    def perform(
        self,
        describe: Describe,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        options: Mapping[str, Any],
        *,
        changes: Iterable[Array] = (),
    ) -> Any:
        """Execute a call on plain arrays and record it; `changes` are arrays that it changes in place."""
        if self.only_times:
            return self._time(name, function, args, options)[0]
        changed = [*_arrays(options.get("out")), *changes]
        self.inside += 1
        try:
            result, timing = self._time(name, function, args, options)
            given = [*_arrays(args), *_arrays(tuple(value for key, value in options.items() if key != "out"))]
            op = _described(describe, Performed(name, args, options, result, self._since))
            self._write(name, op, given, changed, _arrays(result), timing)
        finally:
            self.inside -= 1
        return result

    def _time(
        self,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        options: Mapping[str, Any],
    ) -> tuple[Any, Timing]:
        """Execute and time a call."""
        self.inside += 1
        before = self._usage().faults
        try:
            cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
            result = function(*args, **options)
            wall, cpu = time.perf_counter_ns() - wall, time.thread_time_ns() - cpu
        finally:
            self.inside -= 1
        faults = self._usage().faults - before
        wall_s, cpu_s = (max(time_ns * 1e-9 - extra, 1e-9) for time_ns, extra in zip((wall, cpu), self._overhead, strict=True))
        timing = Timing(name, getattr(result, "shape", ()), wall_s, cpu_s, faults)
        self.times.append(timing)
        return result, timing

    def _since(self, *arrays: Array) -> tuple[float, ...]:
        return tuple(self.recent.touch(*span(array)) for array in arrays)

    def forget(self, array: Array) -> None:
        """Forget the number of an array, because no recorded call created it."""
        self._numbers.pop(identity(array), None)

    def value(self, array: Array) -> int | None:
        """Return the number of an array, or None if no recorded call created it."""
        entry = self._numbers.get(identity(array))
        return entry[0] if entry else None

    def _write(
        self, name: str, op: Described, given: list[Array], changed: list[Array], results: list[Array], timing: Timing
    ) -> None:
        updated = {identity(array) for array in changed}
        reads = tuple(self.value(array) for array in given if identity(array) not in updated)
        made: list[RecordedArray] = []
        updates: list[int | None] = []
        for array in changed:
            number = self.value(array)
            updates.append(number)
            if number is None:
                made.append(self._new(array, is_new=False))
        sources = {identity(array) for array in given} | updated
        results = [result for result in results if identity(result) not in sources]
        made += [self._new(array) for array in results if is_tensor(array) or self.value(array) is None]
        times = (timing.wall, timing.cpu, timing.faults)
        self.steps.append(Step(name, self._line(), op, reads, tuple(updates), tuple(made), *times))

    def _new(self, array: Array, *, is_new: bool = True) -> RecordedArray:
        self._count += 1
        if is_tensor(array):  # a later array may reuse its memory; the call that creates it assigns a new number
            self._numbers[identity(array)] = self._count, None
            return RecordedArray(self._count, tuple(array.shape), dtype_of(array), int(array.nbytes), is_new)
        owner = root(array)
        key = id(owner)
        self._numbers[key] = (self._count, weakref.ref(owner, lambda _: self._numbers.pop(key, None)))
        return RecordedArray(self._count, tuple(owner.shape), dtype_of(owner), int(owner.nbytes), is_new)

    def _line(self) -> str:
        """Return the innermost line of the user's code."""
        frame: Any = sys._getframe(2)  # noqa: SLF001 (there is no public access to the caller)
        while frame is not None and frame.f_code.co_filename.startswith(self.silent):
            frame = frame.f_back
        if frame is None:
            return ""
        file = frame.f_code.co_filename
        return str(frame.f_lineno) if file == self.script else f"{Path(file).stem}:{frame.f_lineno}"


def _arrays(value: Any) -> list[Array]:
    """Return the arrays among arguments or results, in order."""
    if isinstance(value, np.ndarray) or is_tensor(value):
        return [value]
    return [array for item in value[:64] for array in _arrays(item)] if isinstance(value, tuple | list) else []


def _described(describe: Describe, done: Performed) -> Described:
    try:
        return describe(done)
    except NoOp as reason:
        return Described("busy", {}, reason=f"{done.name}: {reason}")
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):  # unexpected arguments must not stop the script
        return Described("busy", {}, reason=f"{done.name}: unsupported arguments")


_TAPES: list[Tape] = []  # the current tape is the last


def current() -> Tape | None:
    """Return the tape that records a call now, or None."""
    return _TAPES[-1] if _TAPES and _TAPES[-1].listens() else None


@contextmanager
def suspended() -> Iterator[None]:
    """Do not record calls inside the block."""
    tape = current()
    if tape is None:
        yield
        return
    tape.inside += 1
    try:
        yield
    finally:
        tape.inside -= 1


def start(tape: Tape) -> None:
    """Record calls on a tape from now on."""
    _TAPES.append(tape)


def end() -> None:
    """Return to the previous tape, if there is one."""
    _TAPES.pop()
