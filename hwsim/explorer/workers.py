"""Worker processes: one for requests about the visible run, one for slower requests, and a spare for either.

Workers are forked from a server that has imported the modules for answers. A request may be hostile or endless: a worker ends
when its CPU time exceeds the limit, or is killed when its elapsed time exceeds a multiple of it, and the spare replaces it. A
newer request of the same kind supersedes a waiting one; a running one is killed when it is older than `PATIENCE`.
"""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from hwsim.explorer import fork_server
from hwsim.explorer.questions import HAND, NEWEST, REST
from hwsim.explorer.requests import mistake
from hwsim.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

PATIENCE: Final = 1.0  # s after which a computation is killed if a newer request waits
MOST_WAITING: Final = 32
STALE: Final = b'{"stale": true}'
_LOOK: Final = 0.05  # s between checks of the clock


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one answer.

    Args:
        seconds: CPU time.
        grid_seconds: CPU time of a grid.
        memory: bytes; 0: unlimited.
        longer: factor between the limits of elapsed time and CPU time.
    """

    seconds: float = 20.0
    grid_seconds: float = 120.0
    memory: int = 2 << 30
    longer: float = 10.0

    def of(self, door: str) -> float:
        """Return the CPU time limit of a request (s)."""
        return self.grid_seconds if door in ("grid", "saved") else self.seconds


class RequestRefused(Exception):
    """An error for a request without an answer: reason and HTTP status."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status


class Workers:
    """The worker processes of a server."""

    def __init__(self, roots: tuple[str, ...], limits: Limits) -> None:
        self._context, self._roots, self._limits = fork_server.context(), roots, limits
        self._spare: _Process | None = None
        self._lanes: tuple[_Lane, ...] = ()
        self._starting: asyncio.Future[None] | None = None
        self.has_stopped = False

    async def start(self) -> None:
        """Start the processes; earlier requests wait for them."""
        self._starting = asyncio.ensure_future(asyncio.to_thread(self._fork))
        await self._starting

    def _fork(self) -> None:
        self._lanes = tuple(_Lane(self, doors) for doors in (HAND, REST))
        self._spare = self.process()

    def stop(self) -> None:
        """Kill all processes without replacement."""
        self.has_stopped = True
        for lane in self._lanes:
            lane.process.end()
        if self._spare is not None:
            self._spare.end()

    def another(self) -> _Process:
        """Return a ready process."""
        spare, self._spare = self._spare, None
        process = spare if spare is not None and spare.is_alive else self.process()
        self._spare = self.process()
        return process

    def process(self) -> _Process:
        """Return a new process, forked from a server with the imports if the system supports it."""
        from hwsim.studies.processes import bare_main  # concurrently with the imports of the fork server

        line, its_end = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(its_end, self._roots, self._limits.memory), daemon=True)
        with bare_main():
            process.start()
        its_end.close()
        return _Process(process, line)

    async def ask(self, door: str, said: Mapping[str, Any]) -> bytes:
        """Return the answer to a request, as JSON.

        Raises:
            KeyError: unknown request.
            Stopped: the request is refused.
        """
        if self._starting is not None:
            await asyncio.shield(self._starting)
        lane = next((lane for lane in self._lanes if door in lane.doors), None)
        if lane is None:
            raise KeyError(door)
        return await lane.ask(_Question(door, said), self._limits)


class _Question:
    def __init__(self, door: str, said: Mapping[str, Any]) -> None:
        self.door, self.said = door, said
        self.kind = str(said.get("page", ""))[:40], door
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def say(self, answer: bytes | RequestRefused) -> None:
        if self.answer.done():  # the client has disconnected
            return
        if isinstance(answer, RequestRefused):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)


class _Lane:
    """A queue of requests for one process; `run` has priority."""

    def __init__(self, workers: Workers, doors: frozenset[str]) -> None:
        self.doors, self.process = doors, workers.process()
        self._workers = workers
        self._waiting: list[_Question] = []
        self._busy = False

    async def ask(self, question: _Question, limits: Limits) -> bytes:
        if question.door in NEWEST:
            for other in [waiting for waiting in self._waiting if waiting.kind == question.kind]:
                self._waiting.remove(other)
                other.say(STALE)
        if len(self._waiting) >= MOST_WAITING:
            raise RequestRefused(f"more than {MOST_WAITING} requests are waiting", 429)
        self._waiting.append(question)
        if not self._busy:
            await self._work(limits)
        return await question.answer

    async def _work(self, limits: Limits) -> None:
        """Answer all waiting requests; the first client runs this loop for all."""
        self._busy = True
        try:
            while self._waiting:
                question = min(self._waiting, key=lambda each: each.door != "run")
                self._waiting.remove(question)
                question.say(await self._answered(question, limits.of(question.door), limits.longer))
        finally:
            self._busy = False

    async def _answered(self, question: _Question, seconds: float, longer: float) -> bytes | RequestRefused:
        began = time.monotonic()
        work = asyncio.ensure_future(asyncio.to_thread(self.process.answer, question.door, question.said, seconds))
        while not (await asyncio.wait([work], timeout=_LOOK))[0]:
            took = time.monotonic() - began
            is_stale = took > PATIENCE and question.door in NEWEST and any(ask.kind == question.kind for ask in self._waiting)
            if is_stale or took > longer * seconds:
                self.process.end()
                await asyncio.wait([work])
                work.exception()  # retrieve the error of the ended process
                self.process = self._workers.another()
                if is_stale:
                    return STALE
                return _mistake(
                    f"stopped after {took:.0f} s, because other programs use the CPUs", "try again, or reduce the run"
                )
        try:
            status, answer = work.result()
        except (EOFError, OSError):
            ended = self.process.ended()
            if self._workers.has_stopped:
                return RequestRefused("the explorer has been stopped", 503)
            self.process = self._workers.another()
            if ended == -getattr(signal, "SIGPROF", 0):
                return _mistake(f"stopped after {seconds:g} s of CPU time", "reduce the run: fewer steps, ops or values")
            return _mistake("the worker process ended, possibly out of memory", "reduce the run")
        return answer if status == 200 else RequestRefused(answer.decode(), status)


def _serve(line: Connection[bytes, bytes], roots: Sequence[str], memory: int) -> None:
    from hwsim.explorer.worker import serve  # already imported if forked

    serve(line, roots, memory)


class _Process:
    """A process and its pipe. Both sides send JSON, which cannot execute code in this process."""

    def __init__(self, process: Any, line: Connection[bytes, bytes]) -> None:
        self._process, self._line = process, line

    @property
    def is_alive(self) -> bool:
        return bool(self._process.is_alive())

    def answer(self, door: str, said: Mapping[str, Any], seconds: float) -> tuple[int, bytes]:
        """Return status and answer; raise EOFError or OSError if the process has ended, as after `seconds` of CPU time."""
        self._line.send_bytes(json.dumps([door, said, seconds]).encode())
        answer = self._line.recv_bytes()
        return int(answer[:3]), answer[3:]

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.join(1.0)

    def ended(self) -> int | None:
        """Return the exit code; negative for the signal that ended the process."""
        self._process.join(1.0)
        code: int | None = self._process.exitcode
        self.end()
        return code


def _mistake(says: str, hint: str) -> bytes:
    return json.dumps({"mistakes": [mistake(says, hint)]}).encode()
