"""Processes that answer: one for the hand that moves, one for what may take longer, and one that stands by for either.

A process is forked from a server that has imported what the answers need.
A question may be hostile or endless: a process ends once it has computed for too long, or is killed by this one's clock where
it is kept from computing, and the one that stands by takes its place. A question that a newer one of the same kind overtakes is
not answered; if it is being computed, it is killed once it is older than `PATIENCE`.
"""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from hwsim.explorer import starting
from hwsim.explorer.asked import mistake
from hwsim.explorer.questions import HAND, NEWEST, REST
from hwsim.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

PATIENCE: Final = 1.0  # seconds that a computation may go on while a newer one waits
MOST_WAITING: Final = 32
STALE: Final = b'{"stale": true}'
_LOOK: Final = 0.05  # seconds between two looks at the clock


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one answer: seconds of computing, seconds for a grid, and bytes of memory (0: any).

    longer: factor by which the clock may show more than that, where other programs take the processors.
    """

    seconds: float = 20.0
    grid_seconds: float = 120.0
    memory: int = 2 << 30
    longer: float = 10.0

    def of(self, door: str) -> float:
        """Seconds of an answer."""
        return self.grid_seconds if door == "grid" else self.seconds


class Stopped(Exception):
    """A question that has no answer: the reason, and the status of HTTP."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status


class Workers:
    """The processes behind a server."""

    def __init__(self, roots: tuple[str, ...], limits: Limits) -> None:
        self._context, self._roots, self._limits = starting.context(), roots, limits
        self._spare: _Process | None = None
        self._lanes: tuple[_Lane, ...] = ()
        self._starting: asyncio.Future[None] | None = None
        self.has_stopped = False

    async def start(self) -> None:
        """Start the processes; questions may come before they are there."""
        self._starting = asyncio.ensure_future(asyncio.to_thread(self._fork))
        await self._starting

    def _fork(self) -> None:
        self._lanes = tuple(_Lane(self, doors) for doors in (HAND, REST))
        self._spare = self.process()

    def stop(self) -> None:
        """End all of them, whatever they do; no other takes their place."""
        self.has_stopped = True
        for lane in self._lanes:
            lane.process.end()
        if self._spare is not None:
            self._spare.end()

    def another(self) -> _Process:
        """A process that is ready."""
        spare, self._spare = self._spare, None
        process = spare if spare is not None and spare.is_alive else self.process()
        self._spare = self.process()
        return process

    def process(self) -> _Process:
        """A new process: forked, where the system can, from a server that has imported what it does."""
        from hwsim.studies.processes import bare_main  # while the server of processes does its own imports

        line, its_end = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(its_end, self._roots, self._limits.memory), daemon=True)
        with bare_main():
            process.start()
        its_end.close()
        return _Process(process, line)

    async def ask(self, door: str, said: Mapping[str, Any]) -> bytes:
        """The answer to a question, as JSON.

        Raises:
            KeyError: there is no such question.
            Stopped: it is refused.
        """
        if self._starting is not None:
            await asyncio.shield(self._starting)
        lane = next((each for each in self._lanes if door in each.doors), None)
        if lane is None:
            raise KeyError(door)
        return await lane.ask(_Question(door, said), self._limits)


class _Question:
    def __init__(self, door: str, said: Mapping[str, Any]) -> None:
        self.door, self.said = door, said
        self.kind = str(said.get("page", ""))[:40], door
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def say(self, answer: bytes | Stopped) -> None:
        if self.answer.done():  # who asked is gone
            return
        if isinstance(answer, Stopped):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)


class _Lane:
    """Questions that one process answers, one after the other; `run` goes before the others."""

    def __init__(self, workers: Workers, doors: frozenset[str]) -> None:
        self.doors, self.process = doors, workers.process()
        self._workers = workers
        self._waiting: list[_Question] = []
        self._busy = False

    async def ask(self, question: _Question, limits: Limits) -> bytes:
        if question.door in NEWEST:
            for other in [each for each in self._waiting if each.kind == question.kind]:
                self._waiting.remove(other)
                other.say(STALE)
        if len(self._waiting) >= MOST_WAITING:
            raise Stopped("too many questions wait", 429)
        self._waiting.append(question)
        if not self._busy:
            await self._work(limits)
        return await question.answer

    async def _work(self, limits: Limits) -> None:
        """Answer all that waits; whoever asks first while nothing is done does it for all."""
        self._busy = True
        try:
            while self._waiting:
                question = min(self._waiting, key=lambda each: each.door != "run")
                self._waiting.remove(question)
                question.say(await self._answered(question, limits.of(question.door), limits.longer))
        finally:
            self._busy = False

    async def _answered(self, question: _Question, seconds: float, longer: float) -> bytes | Stopped:
        began = time.monotonic()
        work = asyncio.ensure_future(asyncio.to_thread(self.process.answer, question.door, question.said, seconds))
        while not (await asyncio.wait([work], timeout=_LOOK))[0]:
            took = time.monotonic() - began
            is_stale = took > PATIENCE and question.door in NEWEST and any(each.kind == question.kind for each in self._waiting)
            if is_stale or took > longer * seconds:
                self.process.end()
                await asyncio.wait([work])
                work.exception()  # that its process has ended
                self.process = self._workers.another()
                if is_stale:
                    return STALE
                return _mistake(
                    f"stopped after {took:.0f} s, as other programs take the processors", "try again, or make it smaller"
                )
        try:
            status, answer = work.result()
        except (EOFError, OSError):
            ended = self.process.ended()
            if self._workers.has_stopped:
                return Stopped("the explorer has been stopped", 503)
            self.process = self._workers.another()
            if ended == -getattr(signal, "SIGPROF", 0):
                return _mistake(f"stopped after {seconds:g} s of computing", "make it smaller: fewer steps, ops or values")
            return _mistake("the process that computed it ended: out of memory, perhaps", "make it smaller")
        return answer if status == 200 else Stopped(answer.decode(), status)


def _serve(line: Connection[bytes, bytes], roots: Sequence[str], memory: int) -> None:
    from hwsim.explorer.doors import serve  # there already, where it was forked

    serve(line, roots, memory)


class _Process:
    """A process, and the line to it; both sides send JSON, which cannot make this process run anything."""

    def __init__(self, process: Any, line: Connection[bytes, bytes]) -> None:
        self._process, self._line = process, line

    @property
    def is_alive(self) -> bool:
        return bool(self._process.is_alive())

    def answer(self, door: str, said: Mapping[str, Any], seconds: float) -> tuple[int, bytes]:
        """The status and the answer. Raises EOFError or OSError once it has ended, as after `seconds` of computing."""
        self._line.send_bytes(json.dumps([door, said, seconds]).encode())
        answer = self._line.recv_bytes()
        return int(answer[:3]), answer[3:]

    def end(self) -> None:
        """Kill it, and forget it."""
        self._process.kill()
        self._process.join(1.0)

    def ended(self) -> int | None:
        """The number of the signal that ended it, below 0."""
        self._process.join(1.0)
        code: int | None = self._process.exitcode
        self.end()
        return code


def _mistake(says: str, hint: str) -> bytes:
    return json.dumps({"mistakes": [mistake(says, hint)]}).encode()
