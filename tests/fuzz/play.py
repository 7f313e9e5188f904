"""One case, played in this process with limits on time and memory; what came of it."""

from __future__ import annotations

import atexit
import gc
import json
import math
import os
import re
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

from click.testing import CliRunner

from hwsim.cli import main
from hwsim.spec.library import library_root
from hwsim.spec.limits import LIMITS, LOOKS, REQUESTS
from hwsim.spec.memo import Shelf, shared
from tests.fuzz import of_calls
from tests.fuzz.case import Case

SECONDS: Final = 10  # of computing, of a case; what takes longer is stopped and counted
LONGER: Final = 3  # times as long by the clock: a case that sleeps, or waits for other processes, ends as well
FEW: Final = {"ops": 20_000, "requests": 2_000, REQUESTS: 2_000, LOOKS: 5_000, "clients": 2_000}
ENDS: Final = (0, 1, 2, 3)  # exit codes that a user may see; 4 is a contradiction
COMMANDING: Final = re.compile("[\0-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069]")  # a terminal
_ANY: Final = re.compile(r"\S*\d\S*|'[^']*'")  # numbers and names, which roots have in common
HERE: Final = Path(__file__).resolve().parents[2]
_PLAYERS: Final = {"explorer": of_calls.ask, "python": of_calls.call}  # what is no command
_LIBRARY: Final[Shelf] = {}  # files of the library that an earlier case has read


class TookLong(BaseException):
    """The time of a case is over."""


class Outcome(NamedTuple):
    """What came of a case: its exit code, -1 if it was stopped; root: where a defect lies, "" if there is none."""

    code: int
    root: str
    shown: str


def play(case: Case, seconds: float = SECONDS) -> Outcome:
    """Play a case in a folder with its files alone. Three of four find files of the library as earlier cases have read them.

    Of 32 cases 31 have lower limits of ops and requests: what is refused and where is the same, and large runs take no time.
    """
    few = nullcontext() if case.seed % 32 == 0 else few_ops()
    with inside(_folder()), few:
        for name, data in case.files.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_bytes(data)
        shelf = {} if case.seed % 4 == 0 else _LIBRARY
        try:
            with shared(shelf) if shelf is _LIBRARY else nullcontext(), stopped_after(seconds):
                if case.arguments[0] in _PLAYERS:
                    return Outcome(*_PLAYERS[case.arguments[0]](case))
                done = CliRunner().invoke(main, list(case.arguments), prog_name="hwsim", input="")
        except TookLong as over:
            return Outcome(-1, "", _where(over))
        except Exception as error:  # noqa: BLE001 (of a call: it is the finding)
            return _failed(1, error)
        finally:
            _keep_library()
            _empty(Path())
    if done.exit_code == -1 or "not enough memory" in done.stderr:
        gc.collect()
    if isinstance(done.exception, TookLong):
        return Outcome(-1, "", _where(done.exception))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return _failed(done.exit_code, done.exception)
    if done.exit_code not in ENDS:
        return Outcome(done.exit_code, f"exit {done.exit_code}: {_ANY.sub('#', done.stderr)[:100]}", done.stderr)
    wrong = impossible(done.stdout, "--json" in case.arguments)
    return Outcome(done.exit_code, wrong, done.stdout[:3000] if wrong else "")


def _failed(code: int, error: BaseException) -> Outcome:
    return Outcome(code, f"{type(error).__name__} {_where(error)}", "".join(traceback.format_exception(error))[-3000:])


@cache
def _folder() -> str:
    """The folder of this process, in memory where there is one."""
    memory = Path("/dev/shm")
    made = tempfile.mkdtemp(prefix="hwsim-fuzz-", dir=memory if os.access(memory, os.W_OK) else None)
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def _empty(folder: Path) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                Path(entry.path).unlink()


def _keep_library() -> None:
    """Of what a case shared, keep files of the library alone."""
    root = str(library_root())
    for name in list(_LIBRARY):
        if name != "files":
            del _LIBRARY[name]
    read = _LIBRARY.get("files", {})
    for name in [name for name in read if not name.startswith(root)]:
        del read[name]


def impossible(printed: str, is_json: bool) -> str:
    """What a printed answer says that cannot be: control characters, or a number that is none; "" if nothing."""
    if bad := COMMANDING.search(printed):
        return f"prints the control character U+{ord(bad[0]):04X}"
    if not is_json or not printed:
        return ""
    with suppress(ValueError):
        json.loads(printed, parse_constant=_refuse)
        return (
            "" if all(math.isfinite(number) for number in _numbers(json.loads(printed))) else "a number of the JSON is not finite"
        )
    return "prints no JSON"


def _refuse(name: str) -> float:
    raise ValueError(name)


def _numbers(value: Any) -> Iterator[float]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, float):
            yield each
        waiting += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()


def _where(error: BaseException) -> str:
    """The innermost line of hwsim that an error came through; the first, of a case that was stopped again while it ended."""
    while isinstance(error, TookLong) and isinstance(error.__context__, TookLong):
        error = error.__context__
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(HERE)]
    own = [frame for frame in frames if "/tests/" not in frame.filename]
    last = own[-1] if own else None
    return "outside" if last is None else f"{Path(last.filename).relative_to(HERE)}:{last.lineno} {last.name}"


@contextmanager
def inside(folder: str) -> Iterator[None]:
    """In another working directory."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def few_ops() -> Iterator[None]:
    """Runs of more than some thousand ops or requests are refused."""
    before = dict(LIMITS)
    LIMITS.update({name: limit._replace(most=FEW[name]) for name, limit in before.items()})
    try:
        yield
    finally:
        LIMITS.update(before)


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raise TookLong after a time of computing, or a longer one by the clock, where the system has an alarm."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    computed, began = time.process_time(), time.monotonic()

    def look(number: int, frame: FrameType | None) -> None:
        if time.process_time() - computed > seconds or time.monotonic() - began > LONGER * seconds:
            raise TookLong

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
