"""Run points: in this process while they are fast, then in a pool of processes, or in a given executor.

A worker process receives points in chunks of about 50 ms, so that small points do not wait for messages. It ends when this
process ends for any reason. If a worker dies, the points of its chunk run again, one at a time; a point that kills two workers
on its own becomes a failed outcome, and the other points are not affected.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, wait
from multiprocessing import connection
from typing import Any, Final

from hwsim.studies.point import Outcome
from hwsim.studies.processes import bare_main, block_signals, serve_parent

FEW: Final = 4  # maximum number of points that run without a pool
PATIENCE: Final = 1.0  # run time before a pool starts, about its start-up cost (seconds)
POLL: Final = 0.5  # polling interval for Ctrl-C, which does not end a wait on every system, and for executors (seconds)
CHUNK: Final = 0.05  # run time of a chunk of points (seconds)
AHEAD: Final = 2  # maximum number of chunks queued per process
TRIES: Final = 2  # number of processes that a point may kill, run alone, before it fails
STARTS: Final = 3  # number of consecutive processes that may end before their first point
LOST: Final = "the process that ran this point ended abruptly"

Values = tuple[object, ...]
Job = Callable[[Values], Outcome]  # runs one point; it and the values are pickled
Finished = Generator[tuple[int, Outcome]]


def run_all(job: Job, points: Mapping[int, Values], *, workers: int | None = None, executor: Executor | None = None) -> Finished:
    """Yield (point number, outcome) as points finish.

    Args:
        job: function that runs a point.
        points: points by number.
        workers: number of processes; 1: only this process; None: one per core, after one second.
        executor: executor that runs the points instead; it is not shut down.
    """
    waiting = dict(points)
    if executor is not None:
        yield from _borrowed(executor, job, waiting)
        return
    count = min(workers or cores(), len(waiting))
    if count > 1 and len(waiting) >= FEW:
        yield from _in_this_process(job, waiting, time.monotonic() + (PATIENCE if workers is None else 0.0))
        if len(waiting) >= FEW:
            yield from _in_processes(job, waiting, min(count, len(waiting)))
    yield from _in_this_process(job, waiting, None)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _in_this_process(job: Job, waiting: dict[int, Values], until: float | None) -> Finished:
    """Run points from `waiting` in sequence, until a time."""
    while waiting and (until is None or time.monotonic() < until):
        number = next(iter(waiting))
        outcome = job(waiting[number])
        del waiting[number]
        yield number, outcome


# ---- processes


class _Worker:
    """A worker process with its assigned chunks, oldest first."""

    def __init__(self, context: Any, job: Job) -> None:
        self.line, its_end = context.Pipe()
        self.process = context.Process(target=_serve, args=(its_end, job), daemon=True)
        with bare_main(), block_signals():
            self.process.start()
        its_end.close()
        self.chunks: deque[list[tuple[int, Values]]] = deque()
        self.ready = False

    def give(self, chunk: list[tuple[int, Values]]) -> None:
        """Send a chunk; a dead process is detected later."""
        self.chunks.append(chunk)
        try:
            self.line.send(chunk)
        except OSError:
            return

    @property
    def reason(self) -> str:
        """Reason why the process ended, as text."""
        self.process.join(POLL)
        code = self.process.exitcode
        if code is not None and code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"signal {-code}"
            return f"{LOST} ({name}{': out of memory, perhaps' if name == 'SIGKILL' else ''})"
        return f"{LOST} (exit status {code})"


def _in_processes(job: Job, waiting: dict[int, Values], count: int) -> Finished:
    """Run points from `waiting` in a new pool; closing the generator stops its processes.

    Points that remain in `waiting` could not run, because no process could be started.
    """
    pool = _Pool(job, waiting, count)
    try:
        yield from pool.outcomes()
    finally:
        _end(pool.workers)


def _end(workers: Sequence[_Worker]) -> None:
    """Stop all worker processes, even if this process is interrupted again while it waits for them."""
    try:
        for worker in workers:
            worker.line.close()
            worker.process.terminate()
        for worker in workers:
            worker.process.join(POLL)
    finally:
        for worker in workers:
            worker.process.kill()
        for worker in workers:
            worker.process.join(POLL)


class _Pool:
    """A pool that distributes points to worker processes."""

    def __init__(self, job: Job, waiting: dict[int, Values], count: int) -> None:
        self.job, self.waiting, self.count = job, waiting, count
        self.context = _context()
        self.workers: list[_Worker] = []
        self.fresh = deque(waiting)  # points not yet given to a process
        self.alone: deque[int] = deque()  # points whose process died: each is run alone
        self.tries: dict[int, int] = {}
        self.failed_starts = 0
        self.seconds = self.ran = 0.0

    def outcomes(self) -> Finished:
        """Yield outcomes as they finish."""
        while self.waiting and self.failed_starts < STARTS:
            while len(self.workers) < min(self.count, len(self.waiting)):
                self.workers.append(_Worker(self.context, self.job))
            for worker in self.workers:
                self._deal(worker)
            by_line = {worker.line: worker for worker in self.workers}
            ends = {worker.process.sentinel: worker for worker in self.workers}
            events = connection.wait([*by_line, *ends], POLL)
            for event in events:
                if event in by_line:
                    yield from self._received(by_line[event])
            for event in events:
                if event in ends and ends[event] in self.workers:
                    yield from self._died(ends[event])

    def _deal(self, worker: _Worker) -> None:
        """Send chunks to a process until it has enough."""
        mean = self.seconds / self.ran if self.ran else None
        ahead = AHEAD if mean is not None and mean < CHUNK else 1
        while len(worker.chunks) < ahead:
            if self.alone:
                if worker.chunks:
                    return
                chunk = [self.alone.popleft()]
            elif self.fresh:
                even = -(-len(self.fresh) // (AHEAD * len(self.workers)))
                size = 1 if not mean else max(1, min(int(CHUNK / mean), even))
                chunk = [self.fresh.popleft() for _ in range(size)]
            else:
                return
            worker.give([(number, self.waiting[number]) for number in chunk])

    def _received(self, worker: _Worker) -> Finished:
        """Return the outcomes that a process has sent."""
        try:
            while worker.line.poll():
                seconds, rows = worker.line.recv()
                if not worker.ready:  # its first message says only that it is there
                    worker.ready, self.failed_starts = True, 0
                    continue
                worker.chunks.popleft()
                self.seconds, self.ran = self.seconds + seconds, self.ran + len(rows)
                for number, outcome in rows:
                    del self.waiting[number]
                    yield number, outcome
        except (EOFError, OSError):
            return  # it has died: its sentinel says so

    def _died(self, worker: _Worker) -> Finished:
        """Requeue the points of a dead process; its current chunk runs again point by point."""
        yield from self._received(worker)
        self.workers.remove(worker)
        reason = worker.reason
        worker.line.close()
        if not worker.ready:
            self.failed_starts += 1
        suspects, *others = [[number for number, _ in chunk] for chunk in worker.chunks] or [[]]
        self.fresh.extendleft(number for chunk in reversed(others) for number in reversed(chunk))
        if not worker.ready:
            self.fresh.extendleft(reversed(suspects))
            return
        for number in suspects:
            if len(suspects) == 1:
                self.tries[number] = self.tries.get(number, 0) + 1
            if self.tries.get(number, 0) < TRIES:
                self.alone.append(number)
                continue
            del self.waiting[number]
            yield number, Outcome(error=reason, lost=True)


def _context() -> Any:
    """Return the start method of processes: fork, so that they share imported modules and built objects.

    If other threads exist, which may hold a lock, a fork server with the same modules is used.
    """
    if sys.platform == "linux" and threading.active_count() == 1:
        return multiprocessing.get_context("fork")
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        sorted(name for name in sys.modules if name.startswith("hwsim.") and not name.endswith("__main__"))
    )
    return context


def _serve(line: connection.Connection, job: Job) -> None:
    """Run chunks until there are no more; the main function of a worker."""
    serve_parent()
    try:
        line.send((0.0, []))
        while True:
            chunk = line.recv()
            began = time.perf_counter()
            rows = [(number, job(values)) for number, values in chunk]
            line.send((time.perf_counter() - began, rows))
    except (EOFError, OSError):
        return


# ---- executors of others


def _borrowed(executor: Executor, job: Job, waiting: Mapping[int, Values]) -> Finished:
    """Run points in the given executor; closing the generator cancels points that have not started."""
    numbers: dict[Future[Outcome], int] = {}
    try:
        for number, values in waiting.items():
            numbers[_submit(executor, job, values)] = number
        left = set(numbers)
        while left:
            done, left = wait(left, POLL)
            for future in sorted(done, key=numbers.__getitem__):
                try:
                    outcome = future.result()
                except BrokenExecutor:  # one process died: the others' points are lost with it, the study is not
                    outcome = Outcome(error=f"{LOST}: out of memory, perhaps", lost=True)
                yield numbers[future], outcome
    finally:
        for future in numbers:
            future.cancel()


def _submit(executor: Executor, job: Job, values: Sequence[object]) -> Future[Outcome]:
    try:
        return executor.submit(job, tuple(values))
    except BrokenExecutor as broken:
        lost: Future[Outcome] = Future()
        lost.set_exception(broken)
        return lost
