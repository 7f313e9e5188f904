"""One case, played in this process with limits on time and memory; what came of it."""

from __future__ import annotations

import gc
import json
import math
import os
import re
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, Final, NamedTuple

from click.testing import CliRunner

from hwsim.cli import main
from tests.fuzz.cases import Case

SECONDS: Final = 10  # of a case; what takes longer is stopped and counted
ENDS: Final = (0, 1, 2, 3)  # exit codes that a user may see; 4 is a contradiction
COMMANDING: Final = re.compile("[\0-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069]")  # a terminal
_ANY: Final = re.compile(r"\S*\d\S*|'[^']*'")  # numbers and names, which roots have in common
HERE: Final = Path(__file__).resolve().parents[2]


class TookLong(BaseException):
    """The time of a case is over."""


class Outcome(NamedTuple):
    """What came of a case: its exit code, -1 if it was stopped; root: where a defect lies, "" if there is none."""

    code: int
    root: str
    shown: str


def play(case: Case, seconds: float = SECONDS) -> Outcome:
    """Play a case in a folder of its own."""
    with TemporaryDirectory(prefix="hwsim-fuzz-") as folder, inside(folder):
        for name, data in case.files.items():
            Path(name).write_bytes(data)
        try:
            with stopped_after(seconds):
                done = CliRunner().invoke(main, list(case.arguments), prog_name="hwsim", input="")
        except TookLong as over:
            return Outcome(-1, "", _where(over))
    if done.exit_code == -1 or "not enough memory" in done.stderr:
        gc.collect()
    if isinstance(done.exception, TookLong):
        return Outcome(-1, "", _where(done.exception))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        text = "".join(traceback.format_exception(done.exception))
        return Outcome(done.exit_code, f"{type(done.exception).__name__} {_where(done.exception)}", text[-3000:])
    if done.exit_code not in ENDS:
        return Outcome(done.exit_code, f"exit {done.exit_code}: {_ANY.sub('#', done.stderr)[:100]}", done.stderr)
    wrong = impossible(done.stdout, "--json" in case.arguments)
    return Outcome(done.exit_code, wrong, done.stdout[:3000] if wrong else "")


def impossible(printed: str, is_json: bool) -> str:
    """What a printed answer says that cannot be: control characters, or a number that is none; "" if nothing."""
    if bad := COMMANDING.search(printed):
        return f"prints the control character U+{ord(bad[0]):04X}"
    if not is_json or not printed:
        return ""
    with suppress(ValueError):
        json.loads(printed, parse_constant=_refuse)
        return "" if all(math.isfinite(each) for each in _numbers(json.loads(printed))) else "a number of the JSON is not finite"
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
    """The innermost line of hwsim that an error came through."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if Path(each.filename).is_relative_to(HERE)]
    own = [each for each in frames if "/tests/" not in each.filename]
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
def stopped_after(seconds: float) -> Iterator[None]:
    """Raise TookLong after a time, where the system has an alarm."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def over(number: int, frame: FrameType | None) -> None:
        raise TookLong

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
