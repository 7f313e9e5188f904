"""The work of a worker process: answer the requests of the page, as JSON over a pipe."""

from __future__ import annotations

import json
import shlex
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from hwsim import api, ticks
from hwsim.api import Run
from hwsim.engine import Deadlock
from hwsim.explorer.answer import answer
from hwsim.explorer.curves import MOST_POINTS, curve, grid, picked
from hwsim.explorer.derivations import more, op
from hwsim.explorer.effects import allowed, effects
from hwsim.explorer.picture import MachineDrawing, picture
from hwsim.explorer.requests import InvalidRequest, PageState, mistake, mistakes_of, number_of, state_of, text_of, texts_of
from hwsim.explorer.saved import NotSaved, contents, page, saved
from hwsim.explorer.scenes import Player, animated
from hwsim.explorer.sliders import MOST, sliders
from hwsim.explorer.spans import Tints
from hwsim.machine import Machine
from hwsim.results.invariants import CONTRADICTS, DEFECT, BrokenInvariant
from hwsim.spec import Mistakes, SpecError, find, names
from hwsim.spec.yaml_writer import edit_yaml
from hwsim.studies.processes import serve_parent
from hwsim.studies.session import Session
from hwsim.workload import sources

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

MOST_SESSIONS: Final = 2
GRID_SECONDS: Final = 100.0
MOST_TEXTS: Final = 50


class WorkerState:
    """The state of a worker between requests: sessions of the last files, last run and last drawing.

    Args:
        roots: folders, besides the library, from which the files may include others.
        grid_seconds: time limit of a grid (s).
    """

    def __init__(self, roots: Sequence[str], grid_seconds: float = GRID_SECONDS) -> None:
        self._roots, self.grid_seconds = tuple(roots), grid_seconds
        self._sessions: dict[tuple[str, ...], Session] = {}
        self._last: tuple[object, Run] | None = None
        self._drawn: tuple[Machine, MachineDrawing] | None = None

    def session(self, state: PageState) -> Session:
        """Return the session of both texts; raise SpecError."""
        key = state.machine, state.workload, *state.files
        session = self._sessions.pop(key, None)
        if session is None:
            session = Session(*state.trees(), roots=self._roots)
        self._sessions[key] = session  # most recently used last
        while len(self._sessions) > MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return session

    def run(self, state: PageState) -> Run:
        """Return the run of a state; the last run is cached."""
        key = state.machine, state.workload, state.files, tuple(state.settings.items())
        if self._last is None or self._last[0] != key:
            self._last = None  # free its memory before the next run
            self._last = key, self.session(state).shown(state.settings, expect="auto")
        return self._last[1]

    def answer(self, state: PageState, run: Run) -> dict[str, Any]:
        """Return the answer with a run."""
        drawn = self.picture(run)
        shown = (
            {"picture": "", "busy": {}} if drawn is None else {"picture": drawn.entries["hash"], "busy": drawn.busy(run.usage)}
        )
        return answer(run, _tints(state), pixels=state.pixels, part=state.part) | shown

    def picture(self, run: Run) -> MachineDrawing | None:
        """Return the drawing of the machine of a run; None if it has no machine."""
        if run.built is None:
            return None
        if self._drawn is None or self._drawn[0] is not run.built:
            self._drawn = run.built, picture(run.built)
        return self._drawn[1]

    def asked(self, door: str, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer to a request; raise SpecError, InvalidRequest and the errors of a run."""
        return _DOORS[door](self, question)

    def answered(self, door: str, question: Mapping[str, Any]) -> tuple[int, bytes]:
        """Return status and text of an answer, for any request."""
        content: Mapping[str, Any]
        try:
            content = self.asked(door, question)
        except InvalidRequest as unclear:
            return 400, str(unclear).encode()
        except SpecError as error:
            content = {"mistakes": mistakes_of(error, state_of(question).files)}
        except ticks.TooLong as error:
            content = {"mistakes": [mistake(error.message, error.hint)]}
        except Deadlock as error:
            content = {"mistakes": [mistake(f"the run cannot finish: {error}")]}
        except MemoryError:
            content = {"mistakes": [mistake("the run exceeds the memory limit of the explorer", "reduce the run")]}
        except RecursionError:
            content = {"mistakes": [mistake("the file is nested too deeply", None)]}
        except BrokenInvariant as error:
            return 500, f"{CONTRADICTS}: {error}; {DEFECT}".encode()
        except Exception as error:  # noqa: BLE001 (the page shows it; the process continues)
            return 500, f"{type(error).__name__}: {error}; {DEFECT}".encode("utf-8", "replace")
        return 200, json.dumps(content, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")


def _run(desk: WorkerState, question: Mapping[str, Any]) -> dict[str, Any]:
    state = state_of(question)
    return desk.answer(state, desk.run(state))


def _tints(state: PageState) -> Tints:
    return Tints(state.coloured, state.whole)


def _animated(desk: WorkerState, said: Mapping[str, Any]) -> dict[str, Any]:
    state, drawn = state_of(said), "" if said.get("drawn") is None else text_of(said, "drawn")
    player = Player(desk.session(state), state.settings, desk.run(state))
    return animated(player, text_of(said, "scene"), _tints(state), listed=said.get("listed") is True, drawn=drawn)


def _op(desk: WorkerState, question: Mapping[str, Any]) -> dict[str, Any]:
    row = op(desk.run(state_of(question)), number_of(question, "op"))
    if row is None:
        raise InvalidRequest("no such op in the run")
    return row


def _picture(desk: WorkerState, said: Mapping[str, Any]) -> Mapping[str, Any]:
    drawn = desk.picture(desk.run(state_of(said)))
    return {"hash": "", "boxes": [], "lines": [], "frames": [], "round": False} if drawn is None else drawn.entries


def _machine(desk: WorkerState, question: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the drawing of the machine before the first run."""
    state = state_of(question)
    session = desk.session(state)
    with session.warm():
        machine, _ = sources.changed(*session.files, state.settings, Mistakes(), [])
        return picture(api.load_machine(machine)).entries


def _more(desk: WorkerState, said: Mapping[str, Any]) -> dict[str, Any]:
    state = state_of(said)
    with desk.session(state).warm():
        return more(desk.run(state), helps=said.get("helps") is not False)


def _sliders(desk: WorkerState, said: Mapping[str, Any]) -> dict[str, Any]:
    session = desk.session(state_of(said))
    with session.warm():
        return {"sliders": [slider.as_dict() for slider in sliders(*session.files)]}


def _curve(desk: WorkerState, said: Mapping[str, Any]) -> dict[str, Any]:
    state = state_of(said)
    session = desk.session(state)
    return curve(session.shown, state.settings, text_of(said, "path"), texts_of(said, "values", MOST_TEXTS))


def _effects(desk: WorkerState, said: Mapping[str, Any]) -> dict[str, Any]:
    state, paths = state_of(said), texts_of(said, "paths", MOST)
    session = desk.session(state)
    with session.warm():
        by_path = {slider.path: slider for slider in sliders(*session.files)}
    known = [by_path[path] for path in paths if path in by_path]
    found = effects(session.shown, state.settings, known)
    rows = [[effect.path, effect.size, effect.reason, list(effect.legal)] for effect in found]
    return {"effects": rows, "left": [slider.path for slider in known[len(found) :]]}


def _grid(desk: WorkerState, question: Mapping[str, Any]) -> dict[str, Any]:
    state = state_of(question)
    session, steps, paths = desk.session(state), question.get("steps", 9), texts_of(question, "paths", 3)
    if not isinstance(steps, int) or not 2 <= steps <= 25 or steps ** len(paths) > MOST_POINTS:
        raise InvalidRequest(f"'steps': expected a whole number from 2 to 25, and at most {MOST_POINTS} points in total")
    with session.warm():
        by_path = {slider.path: slider for slider in sliders(*session.files)}
    if unknown := [path for path in paths if path not in by_path]:
        return {"mistakes": [mistake(f"no slider '{unknown[0]}'", None)]}
    found = effects(session.shown, state.settings, [by_path[path] for path in paths], budget=desk.grid_seconds)
    legal = {effect.path: effect.legal for effect in found}
    chosen = [allowed(by_path[path], legal[path]) if path in legal else by_path[path] for path in paths]
    axes = [(slider, picked(slider, state.settings.get(slider.path, slider.text), steps)) for slider in chosen]
    unzoomed = replace(state, part=(0.0, 1.0))
    return grid(session.shown, state.settings, axes, partial(desk.answer, unzoomed), time.monotonic() + desk.grid_seconds)


def _saved(desk: WorkerState, question: Mapping[str, Any]) -> dict[str, Any]:
    paths, film = texts_of(question, "paths", 3), question.get("film", "")
    if not paths or not isinstance(film, str):
        raise InvalidRequest("'paths': expected one to three paths of sliders; 'film': expected a text")
    state_of(question)
    try:
        content = saved(desk.asked, question, paths, film=film)
    except NotSaved as error:
        return {"mistakes": [mistake(str(error))]}
    return {"text": page(content), "contents": contents(content)}


def _exported(desk: WorkerState, question: Mapping[str, Any]) -> dict[str, Any]:
    state = state_of(question)
    session = desk.session(state)
    with session.warm():
        machine, workload = sources.changed(*session.files, state.settings, Mistakes(), [])
    words = ["hwsim", "simulate", "machine.yaml", "workload.yaml"]
    for path, value in state.settings.items():
        words += ["--set", f"{path}={value}"]
    before = session.files
    if state.settings:
        workload = workload.without("expect")  # expectations are for the original numbers
    return {
        "machine": edit_yaml(state.machine, before[0], machine),
        "workload": edit_yaml(state.workload, before[1], workload),
        "command": shlex.join(words),
    }


def _file(_desk: WorkerState, said: Mapping[str, Any]) -> dict[str, Any]:
    kind, name = text_of(said, "kind"), text_of(said, "name")
    if kind not in ("machine", "workload") or name not in names(kind):
        raise InvalidRequest("no such file in the library")
    return {"text": find(kind, name).read_text("utf-8")}


_DOORS: Final[dict[str, Callable[[WorkerState, Mapping[str, Any]], Mapping[str, Any]]]] = {
    "run": _run,
    "op": _op,
    "picture": _picture,
    "machine": _machine,
    "more": _more,
    "sliders": _sliders,
    "curve": _curve,
    "effects": _effects,
    "grid": _grid,
    "animated": _animated,
    "exported": _exported,
    "saved": _saved,
    "file": _file,
}


def serve(line: Connection[bytes, bytes], roots: Sequence[str], memory: int) -> None:
    """Answer requests until the other end of the pipe closes."""
    serve_parent()
    _limit(memory)
    desk = WorkerState(roots)
    try:
        while True:
            door, question, seconds = json.loads(line.recv_bytes())
            _end_after(seconds)
            status, text = desk.answered(door, question)
            _end_after(0.0)
            line.send_bytes(b"%03d" % status + text)
    except (EOFError, OSError):
        return


def _end_after(seconds: float) -> None:
    """Limit the CPU time of this process by SIGPROF, if the system supports it; 0: no limit."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _limit(memory: int) -> None:
    """Limit the memory of this process to its current size plus a number of bytes, if the system supports it."""
    try:
        import resource
        from pathlib import Path

        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    except (ImportError, OSError, ValueError):
        return
    if memory:
        most = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
