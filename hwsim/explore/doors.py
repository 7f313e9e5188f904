"""The questions of the page, and the process that answers them: JSON in, JSON out, over a pipe."""

from __future__ import annotations

import json
import multiprocessing
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from hwsim import ticks
from hwsim.engine import Deadlock
from hwsim.explore.answer import answer
from hwsim.explore.asked import State, Unclear, mistake, mistakes_of, state_of
from hwsim.results.invariants import CONTRADICTS, DEFECT, BrokenInvariant
from hwsim.spec import SpecError
from hwsim.studies.pool import collect_rarely, end_with_parent
from hwsim.studies.session import Session

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

HAND: Final = frozenset({"run", "ready"})
REST: Final = frozenset({"check"})
NEWEST: Final = frozenset({"run", "more", "curve", "picture", "check", "complete", "grid"})  # only the newest is worth an answer
MOST_SESSIONS: Final = 2
TRIED: Final = ("d2l-gpu-workstation", "d2l/copy-overlap")


class Desk:
    """What a process keeps between two answers: the sessions of the last files."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple(roots)
        self._sessions: dict[tuple[str, str], Session] = {}
        self._tints: dict[tuple[str, str], dict[str, int]] = {}

    def session(self, state: State) -> Session:
        """The session of the two texts; raises SpecError."""
        key = state.machine, state.workload
        found = self._sessions.pop(key, None)
        if found is None:
            found = Session(*state.trees(self._roots), roots=self._roots)
        self._sessions[key] = found  # the last one is the latest
        while len(self._sessions) > MOST_SESSIONS:
            self._tints.pop(gone := next(iter(self._sessions)), None)
            del self._sessions[gone]
        return found

    def tints(self, state: State) -> dict[str, int]:
        """Colours of the names of a session, which stay while a hand moves."""
        return self._tints.setdefault((state.machine, state.workload), {})

    def tried(self) -> None:
        """Run something small, so that a process forked from this one need not import."""
        from hwsim.spec import find

        texts = [find(kind, name).read_text("utf-8") for kind, name in zip(("machine", "workload"), TRIED, strict=True)]
        for door in sorted((HAND | REST) - {"ready"}):
            self.answered(door, {"machine": texts[0], "workload": texts[1]})

    def answered(self, door: str, said: Mapping[str, Any]) -> tuple[int, bytes]:
        """Status and text of an answer; nothing that is asked makes it raise."""
        try:
            found = _DOORS[door](self, said)
        except Unclear as unclear:
            return 400, str(unclear).encode()
        except SpecError as error:
            found = {"mistakes": mistakes_of(error)}
        except ticks.TooLong as error:
            found = {"mistakes": [mistake(error.message, error.hint)]}
        except Deadlock as error:
            found = {"mistakes": [mistake(f"the run cannot finish: {error}")]}
        except MemoryError:
            found = {"mistakes": [mistake("it takes more memory than a run may have here", "make it smaller")]}
        except RecursionError:
            found = {"mistakes": [mistake("it is nested too deep", None)]}
        except BrokenInvariant as error:
            return 500, f"{CONTRADICTS}: {error}; {DEFECT}".encode()
        except Exception as error:  # noqa: BLE001 (a page shows it; the process lives on)
            return 500, f"{type(error).__name__}: {error}; {DEFECT}".encode("utf-8", "replace")
        return 200, json.dumps(found, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")


def _run(desk: Desk, said: Mapping[str, Any]) -> dict[str, Any]:
    state = state_of(said)
    began = time.perf_counter()
    run = desk.session(state).shown(state.settings, expect="auto")
    took = time.perf_counter() - began
    found = answer(run, desk.tints(state), pixels=state.pixels, part=state.part)
    found["cost"]["simulate"] = took
    return found


def _check(desk: Desk, said: Mapping[str, Any]) -> dict[str, Any]:
    state = state_of(said)
    session = desk.session(state)
    session.shown(state.settings)
    return {"mistakes": []}


_DOORS: Final[dict[str, Callable[[Desk, Mapping[str, Any]], dict[str, Any]]]] = {
    "ready": lambda _desk, _said: {},
    "run": _run,
    "check": _check,
}


def serve(line: Connection[bytes, bytes], roots: Sequence[str], memory: int) -> None:
    """Answer until the other end closes: the work of a process."""
    for name in ("SIGINT", "SIGHUP"):  # left to the parent, which stops its processes
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    collect_rarely()
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=end_with_parent, args=(parent,), daemon=True).start()
    _limit(memory)
    desk = Desk(roots)
    try:
        while True:
            door, said = json.loads(line.recv_bytes())
            status, text = desk.answered(door, said)
            line.send_bytes(b"%03d" % status + text)
    except (EOFError, OSError):
        return


def _limit(memory: int) -> None:
    """No more than so many bytes beyond what the process has, where the system can say so."""
    try:
        import resource
        from pathlib import Path

        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    except (ImportError, OSError, ValueError):
        return
    if memory:
        most = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
