"""Calls of a recorded program in order, the arrays that each works on, and its time.

An array stands for the memory it owns, so a view counts as the array whose memory it shows.
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

_SILENT: Final = (str(Path(np.__file__).parent), str(Path(__file__).parent), "<")  # files whose lines are not the user's
_PROBES: Final = 200
_ROWS: Final = 5


class NoOp(Exception):
    """hwsim has no op for a call; the text says why."""


class Made(NamedTuple):
    """An array that appears with a call: its number, shape, number format ("" if hwsim has none like it) and bytes."""

    value: int
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    fresh: bool = True  # False: it existed before, made by no recorded call


@dataclass(frozen=True, slots=True)
class Described:
    """A call as an op.

    Args:
        kind: kind of op; `busy` if hwsim has none for this call.
        keys: keys of the op.
        since: bytes used since the last use of each operand.
        reason: why the kind is `busy`.
        call: the call that the op lowers to; None if hwsim has no such call.
    """

    kind: str
    keys: Mapping[str, Any]
    since: tuple[float, ...] = ()
    reason: str = ""
    call: LibraryCall | None = None


@dataclass(frozen=True, slots=True)
class Performed:
    """A call that was made on plain arrays.

    Args:
        name: name of the function.
        args, options: its arguments.
        result: what it returned.
        since: marks arrays as used; returns the bytes used since the last use of each.
    """

    name: str
    args: tuple[Any, ...]
    options: Mapping[str, Any]
    result: Any
    since: Callable[..., tuple[float, ...]]

    def option(self, key: str, place: int, otherwise: Any = None) -> Any:
        """An argument by its keyword, or by its place."""
        return self.options.get(key, self.args[place] if len(self.args) > place else otherwise)


@dataclass(frozen=True, slots=True)
class Step:
    """One call.

    Args:
        name: name of the function.
        line: line of the script, or `module:line`.
        reads, updates: numbers of arrays; None for an array that no recorded call made.
        wall, cpu: seconds.
        faults: pages of memory touched for the first time.
    """

    name: str
    line: str
    op: Described
    reads: tuple[int | None, ...] = ()
    updates: tuple[int | None, ...] = ()
    made: tuple[Made, ...] = ()
    wall: float = 0.0
    cpu: float = 0.0
    faults: float = 0.0


Describe = Callable[[Performed], Described]


def _overhead() -> tuple[float, float]:
    """Seconds that reading the clocks adds to (wall, CPU) of a call: of a short one between two looks, over many in a row."""
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
    wall_s, cpu_s = (max(float(np.median(each)) - min(rows), 0.0) * 1e-9 for each in (walls, cpus))
    return wall_s, cpu_s


class Timing(NamedTuple):
    """A call by its name and the shape of its result; seconds of (wall, CPU), pages of memory touched for the first time."""

    name: str
    shape: tuple[int, ...]
    wall: float
    cpu: float
    faults: int = 0


@dataclass(slots=True)
class Tape:
    """Calls as they are recorded.

    Args:
        script: file whose lines are given without a file name.
        only_times: record only the time of each call, because describing it would cool the caches between calls.
    """

    script: str = ""
    only_times: bool = False
    times: list[Timing] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    recent: Recency = field(default_factory=Recency)
    inside: int = 0  # recorded calls in progress; calls inside them are part of them
    elsewhere: int = 0  # calls of other threads, which are not recorded
    silent: tuple[str, ...] = _SILENT
    _numbers: dict[int, tuple[int, weakref.ref[Array] | None]] = field(
        default_factory=dict
    )  # by the memory that an array lies in
    _count: int = 0
    _thread: int = field(default_factory=threading.get_ident)
    _overhead: tuple[float, float] = field(default_factory=_overhead)
    _usage: Callable[[], Usage] = field(default_factory=usage_reader)

    def listens(self) -> bool:
        """Whether a call that is made now is recorded."""
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
        """Make a call on plain arrays, and record it; `changes` are arrays that it changes in place."""
        if self.only_times:
            return self._time(name, function, args, options)[0]
        changed = [*_arrays(options.get("out")), *changes]
        self.inside += 1
        try:
            result, took = self._time(name, function, args, options)
            given = [*_arrays(args), *_arrays(tuple(value for key, value in options.items() if key != "out"))]
            op = _described(describe, Performed(name, args, options, result, self._since))
            self._write(name, op, given, changed, _arrays(result), took)
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
        """Make the call, and nothing else between two looks at the clocks."""
        self.inside += 1
        before = self._usage().faults
        try:
            cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
            result = function(*args, **options)
            wall, cpu = time.perf_counter_ns() - wall, time.thread_time_ns() - cpu
        finally:
            self.inside -= 1
        faults = self._usage().faults - before
        more, most = self._overhead
        took = Timing(name, getattr(result, "shape", ()), max(wall * 1e-9 - more, 1e-9), max(cpu * 1e-9 - most, 1e-9), faults)
        self.times.append(took)
        return result, took

    def _since(self, *arrays: Array) -> tuple[float, ...]:
        return tuple(self.recent.touch(*span(array)) for array in arrays)

    def forget(self, array: Array) -> None:
        """Know nothing of the memory of an array that no recorded call made."""
        self._numbers.pop(identity(array), None)

    def value(self, array: Array) -> int | None:
        """The number of an array; None for one that no recorded call made."""
        entry = self._numbers.get(identity(array))
        return entry[0] if entry else None

    def _write(
        self, name: str, op: Described, given: list[Array], changed: list[Array], results: list[Array], took: Timing
    ) -> None:
        among = {identity(each) for each in changed}
        reads = tuple(self.value(each) for each in given if identity(each) not in among)
        made: list[Made] = []
        updates: list[int | None] = []
        for each in changed:
            number = self.value(each)
            updates.append(number)
            if number is None:
                made.append(self._new(each, fresh=False))
        sources = {identity(each) for each in given} | among
        results = [result for result in results if identity(result) not in sources]
        made += [self._new(each) for each in results if is_tensor(each) or self.value(each) is None]
        self.steps.append(Step(name, self._line(), op, reads, tuple(updates), tuple(made), took.wall, took.cpu, took.faults))

    def _new(self, array: Array, *, fresh: bool = True) -> Made:
        self._count += 1
        if is_tensor(array):  # its place may be another array's later on, which is then made by another call
            self._numbers[identity(array)] = self._count, None
            return Made(self._count, tuple(array.shape), dtype_of(array), int(array.nbytes), fresh)
        owner = root(array)
        key = id(owner)
        self._numbers[key] = (self._count, weakref.ref(owner, lambda _: self._numbers.pop(key, None)))
        return Made(self._count, tuple(owner.shape), dtype_of(owner), int(owner.nbytes), fresh)

    def _line(self) -> str:
        """The innermost line that is neither a library's nor the recorder's."""
        frame: Any = sys._getframe(2)  # noqa: SLF001 (the only way to know who calls)
        while frame is not None and frame.f_code.co_filename.startswith(self.silent):
            frame = frame.f_back
        if frame is None:
            return ""
        file = frame.f_code.co_filename
        return str(frame.f_lineno) if file == self.script else f"{Path(file).stem}:{frame.f_lineno}"


def _arrays(value: Any) -> list[Array]:
    """The arrays among arguments or results, in order."""
    if isinstance(value, np.ndarray) or is_tensor(value):
        return [value]
    return [array for each in value[:64] for array in _arrays(each)] if isinstance(value, tuple | list) else []


def _described(describe: Describe, done: Performed) -> Described:
    try:
        return describe(done)
    except NoOp as reason:
        return Described("busy", {}, reason=f"{done.name}: {reason}")
    except (
        AttributeError,
        IndexError,
        KeyError,
        TypeError,
        ValueError,
    ):  # a call with unforeseen arguments must not stop the script
        return Described("busy", {}, reason=f"arguments of {done.name} that are unknown")


_TAPES: list[Tape] = []  # the one that runs, last


def current() -> Tape | None:
    """The tape that records this call; None while nothing is recorded."""
    return _TAPES[-1] if _TAPES and _TAPES[-1].listens() else None


@contextmanager
def unheard() -> Iterator[None]:
    """Calls inside are not recorded."""
    tape = current()
    if tape is None:
        yield
        return
    tape.inside += 1
    try:
        yield
    finally:
        tape.inside -= 1


def started(tape: Tape) -> None:
    """Record calls on this tape from now on."""
    _TAPES.append(tape)


def ended() -> None:
    """Go on with the tape before it, if there was one."""
    _TAPES.pop()
