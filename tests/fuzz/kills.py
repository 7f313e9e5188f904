"""Commands killed at any moment: `python -m tests.fuzz.kills --moments 1000`.

A command runs in a process of its own, which kills itself by SIGKILL at a drawn call of a Python function: the calls of a
whole run are counted first, so a moment is a part of the run and depends on no clock. Worker processes count on from where they
began, and one of them may be the one that dies: then the command goes on, as if nothing had been. In the end three things must
hold: a file has its whole content, or what was there before; no process of it is left; and the same command, run again, ends with
the same files. Where two processes write the same files at once, one of them does, and the other refuses or finds all done.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

import click

from hwsim.cli import main as hwsim

LONGEST: Final = 60.0  # seconds of a run, and until its processes are gone
REFUSED: Final = 2  # status of a command whose files another process writes
LOOP: Final = ("d2l-laptop", "d2l/async-loop")
STUDY: Final = """{"hwsim": "study/1", "machine": "d2l-laptop", "workload": "d2l/async-loop", "points": {"grid": {"n": "1..8"}},
"rows": "rows.csv"}"""
SCRIPT: Final = "import numpy as np\na = np.ones((30, 30))\nfor _ in range(5):\n    b = a @ a.T\n"


@dataclass(frozen=True)
class Killed:
    """A command that is killed.

    Args:
        files: what it writes.  given: files that it reads.  share: part of all moments.
        same: the files have the same bytes each time; else they are only whole.
        serves: it does not end by itself.
        twice: the same command begins in a second process meanwhile, at a drawn call of the first.
    """

    arguments: tuple[str, ...]
    files: tuple[str, ...]
    share: float
    given: tuple[tuple[str, str], ...] = ()
    same: bool = True
    serves: bool = False
    twice: bool = False


COMMANDS: Final[dict[str, Killed]] = {
    "simulate --trace": Killed(("simulate", *LOOP, "--set", "n=50", "-q", "--trace", "t.json"), ("t.json",), 0.2),
    "simulate --plot": Killed(("simulate", *LOOP, "--set", "n=50", "-q", "--plot", "gantt", "g.svg"), ("g.svg",), 0.05),
    "sweep": Killed(("sweep", *LOOP, "--vary", "n=1..8", "--workers", "1", "-o", "s.csv"), ("s.csv",), 0.25),
    "sweep, two processes": Killed(("sweep", *LOOP, "--vary", "n=1..8", "--workers", "2", "-o", "s.csv"), ("s.csv",), 0.05),
    "sweep, twice at once": Killed(
        ("sweep", *LOOP, "--vary", "n=1..8", "--workers", "1", "-o", "s.csv"), ("s.csv",), 0.1, twice=True
    ),
    "study, twice at once": Killed(
        ("study", "study.json", "--workers", "1"), ("rows.csv",), 0.1, (("study.json", STUDY),), twice=True
    ),
    "study": Killed(("study", "study.json", "--workers", "1"), ("rows.csv",), 0.2, (("study.json", STUDY),)),
    "plan": Killed(
        ("plan", *LOOP, "--vary", "blocking=true,false", "--minimise", "time", "--journal", "p.jsonl"), ("p.jsonl",), 0.1
    ),
    "record": Killed(("record", "step.py"), ("step.yaml", "step.measured.json.gz"), 0.1, (("step.py", SCRIPT),), same=False),
    "calibrate measure": Killed(
        ("calibrate", "measure", "-o", "m.json", "--suite", "allocation", "--budget", "1"), ("m.json",), 0.03, same=False
    ),
    "explore": Killed(("explore", *LOOP, "--no-open"), (), 0.02, serves=True),
}


def killed(name: str, moments: int, seed: int = 0) -> Counter[str]:
    """Kill a command at so many moments: how often what came of it, in words; "as it should" is the best."""
    command, dice, found = COMMANDS[name], random.Random(f"{name} {seed}"), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="hwsim-kills-") as folder:
        whole = Path(folder, "whole")
        calls = _counted(command, whole)
        for number in range(moments):
            here = Path(folder, str(number))
            before = dice.random() < 0.5 and not command.serves  # the files of an earlier run are there
            _prepare(command, here, whole if before and command.same else None)
            at = dice.randrange(1, calls)
            if command.twice:
                # half of the first processes are killed, some before the second has begun
                came = _both(command, here, at if dice.random() < 0.5 else calls + 1, dice.randrange(1, calls))
            else:
                _run(command, here, at)
                came = ""
            found[came or _outcome(command, here, whole)] += 1
            shutil.rmtree(here)
    return found


def _prepare(command: Killed, here: Path, earlier: Path | None) -> None:
    here.mkdir(parents=True)
    for name, text in command.given:
        (here / name).write_text(text, encoding="utf-8")
    if earlier is not None and command.files != ("p.jsonl",):
        for name in command.files:
            shutil.copy(earlier / name, here / name)


def _counted(command: Killed, whole: Path) -> int:
    """Calls of a whole run, which leaves its files there. What it imports is imported here first: no moment is lost to that."""
    if command.serves:
        return 200_000
    for _ in range(2):
        shutil.rmtree(whole, ignore_errors=True)
        _prepare(command, whole, None)
        _run(command, whole, 0)
        calls, *modules = (whole / "calls").read_text(encoding="utf-8").split()
        for name in modules:
            importlib.import_module(name)
    return int(calls)


def _both(command: Killed, here: Path, at: int, begins: int) -> str:
    """Run a command, killed at a call, and the same in a second process from another call of the first on.

    What came of both that should not, in words: a process that is not killed ends well, or refuses what the other writes.
    """
    listens, says = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(listens)
        _play(command, here, at, {begins: partial(os.close, says)})
    os.close(says)
    second = os.fork()
    if second == 0:
        os.read(listens, 1)  # until the first has come so far, or is gone
        _play(command, here, -1, said="second")
    os.close(listens)
    ended = _awaited(first, LONGEST), _awaited(second, LONGEST)
    said = (here / "second").read_text(encoding="utf-8")
    if ended[0] not in (0, -signal.SIGKILL, REFUSED) or ended[1] not in (0, REFUSED):
        return f"the processes end with {ended}"
    if ended[1] == REFUSED and "another process is writing" not in said:
        return f"the second says {said}"
    (here / "second").unlink()
    return "" if 0 in ended or -signal.SIGKILL in ended else "both refuse"


def _run(command: Killed, here: Path, at: int) -> int:
    """Run a command, killed at a call; 0: to its end, and note its calls; -1: to its end. The status of its end."""
    process = os.fork()
    if process == 0:
        _play(command, here, at)
    return _awaited(process, LONGEST if not command.serves else 3.0)


def _awaited(process: int, seconds: float) -> int:
    """The status of a process, which is killed if it does not end."""
    status = _ended(process, seconds)
    if status is None:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        return -9
    return status


def _play(
    command: Killed, here: Path, at: int, marks: Mapping[int, Callable[[], None]] | None = None, said: str = ""
) -> NoReturn:
    os.setsid()
    os.chdir(here)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    if said:
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 2)
    calls = 0

    def count(frame: FrameType, event: str, given: Any) -> None:
        nonlocal calls
        calls += 1
        if marks and calls in marks:
            marks[calls]()
        if calls == at and _is_first():
            os.kill(os.getpid(), signal.SIGKILL)

    status = 70
    if at >= 0:
        sys.setprofile(count)
    try:
        hwsim(list(command.arguments), prog_name="hwsim", standalone_mode=True)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0
    finally:
        sys.setprofile(None)
        if not at:
            modules = [name for name in sys.modules if name.partition(".")[0].startswith("hwsim")]
            Path("calls").write_text("\n".join([str(calls), *modules]), encoding="utf-8")
        os._exit(status)


def _is_first() -> bool:
    """Whether no process of the command was killed before: workers have its counter, and so do those in place of a killed one."""
    with suppress(FileExistsError):
        os.close(os.open("killed", os.O_CREAT | os.O_EXCL))
        return True
    return False


def _ended(process: int, seconds: float) -> int | None:
    """The status of a process once it has ended; None if it has not after so long."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    return None


def _outcome(command: Killed, here: Path, whole: Path) -> str:
    if _outlived(here):
        return "a process is left"
    for name in command.files:
        if (here / name).exists() and not name.endswith("p.jsonl") and not _is_whole(command, here / name, whole / name):
            return f"{name} is half written"
    if command.serves:
        return "as it should"
    if status := _run(command, here, -1):
        return f"again, it ends with {status}"
    for name in command.files:
        if not (here / name).exists():
            return f"again, it leaves no {name}"
        if not _is_whole(command, here / name, whole / name):
            return f"again, {name} is another"
    return "as it should"


def _is_whole(command: Killed, file: Path, whole: Path) -> bool:
    if command.same:
        return file.read_bytes() == whole.read_bytes()
    try:
        _readers()[file.name](file)
    except Exception:  # noqa: BLE001 (whatever half a file does)
        return False
    return True


def _readers() -> dict[str, Callable[[Path], object]]:
    from hwsim.functions.files import check
    from hwsim.spec.packed import read_json

    return {
        "step.yaml": lambda file: check(str(file)),
        "step.measured.json.gz": read_json,
        "m.json": lambda file: json.loads(file.read_bytes()),
    }


def _outlived(here: Path) -> bool:
    """Whether a process in this folder is left after a while."""
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        if not any(_stands_in(entry, here) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
            return False
        time.sleep(0.02)
    return True


def _stands_in(process: Path, here: Path) -> bool:
    try:
        return (process / "cwd").readlink() == here
    except OSError:
        return False


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", nargs="*", default=list(COMMANDS), choices=list(COMMANDS))
    given = parser.parse_args()
    wrong = _all(given.commands, given.moments, given.seed)
    sys.exit(1 if wrong else 0)


def _all(names: Sequence[str], moments: int, seed: int) -> int:
    wrong = 0
    for name in names:
        found = killed(name, max(1, round(moments * COMMANDS[name].share)), seed)
        click.echo(f"{name:24} {found.total():6}  {dict(found)}")
        wrong += found.total() - found["as it should"]
    return wrong


if __name__ == "__main__":
    main()
