"""Run points: in this process while that is quick, then in a pool of processes; or in an executor that is passed in."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final

from hwsim.study.point import Outcome

FEW: Final = 4  # points for which no process is started
PATIENCE: Final = 1.0  # seconds: what a pool costs to start, so a study that takes less never pays for one
POLL: Final = 0.5  # seconds between looks for Ctrl-C, which does not end a wait on every system
LOST: Final = "the process that ran this point ended abruptly: out of memory, or a script without `if __name__ == '__main__':`"

Task = Callable[[], Outcome]


def run_all(
    tasks: Mapping[int, Task], *, workers: int | None = None, executor: Executor | None = None
) -> Generator[tuple[int, Outcome]]:
    """Outcomes with the numbers of their tasks, as they finish.

    Args:
        workers: processes; 1 is this one only. None: as many as there are cores, once a second has passed.
        executor: runs the tasks instead; it is not shut down.
    """
    waiting = dict(tasks)
    if executor is not None:
        yield from _borrowed(executor, waiting)
        return
    count = min(workers or _cores(), len(waiting))
    if count > 1 and len(waiting) >= FEW:
        yield from _in_this_process(waiting, time.monotonic() + (PATIENCE if workers is None else 0.0))
        if len(waiting) >= FEW:
            yield from _in_processes(waiting, min(count, len(waiting)))
            return
    yield from _in_this_process(waiting, None)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _in_this_process(waiting: dict[int, Task], until: float | None) -> Iterator[tuple[int, Outcome]]:
    """Run tasks one after the other, taking them out of `waiting`, until the clock says so."""
    while waiting and (until is None or time.monotonic() < until):
        number = next(iter(waiting))
        outcome = waiting[number]()
        del waiting[number]
        yield number, outcome


def _in_processes(waiting: dict[int, Task], count: int) -> Iterator[tuple[int, Outcome]]:
    """Run tasks in a new pool; closing the generator stops its processes."""
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), initializer=_leave_ctrl_c_to_the_parent)
    finished = False
    try:
        yield from _through(pool, waiting, [])
        finished = True
    finally:
        pool.shutdown(wait=finished, cancel_futures=True)
        for process in [] if finished else multiprocessing.active_children():
            if process not in others:
                process.terminate()


def _borrowed(executor: Executor, waiting: Mapping[int, Task]) -> Iterator[tuple[int, Outcome]]:
    """Run tasks in the executor that was passed in; closing the generator cancels tasks that have not begun."""
    futures: list[Future[Outcome]] = []
    try:
        yield from _through(executor, waiting, futures)
    finally:
        for future in futures:
            future.cancel()


def _leave_ctrl_c_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _through(executor: Executor, waiting: Mapping[int, Task], futures: list[Future[Outcome]]) -> Iterator[tuple[int, Outcome]]:
    done: SimpleQueue[tuple[int, Future[Outcome]]] = SimpleQueue()
    for number, task in waiting.items():
        future = _submit(executor, task)
        futures.append(future)
        future.add_done_callback(partial(_note, done, number))
    for _ in waiting:
        number, ended = _next(done)
        try:
            outcome = ended.result()
        except BrokenExecutor:  # one process died: the others' points are lost with it, the study is not
            outcome = Outcome(error=LOST)
        yield number, outcome


def _note(done: SimpleQueue[tuple[int, Future[Outcome]]], number: int, ended: Future[Outcome]) -> None:
    done.put((number, ended))


def _submit(executor: Executor, task: Task) -> Future[Outcome]:
    try:
        return executor.submit(task)
    except BrokenExecutor as broken:
        lost: Future[Outcome] = Future()
        lost.set_exception(broken)
        return lost


def _next(done: SimpleQueue[tuple[int, Future[Outcome]]]) -> tuple[int, Future[Outcome]]:
    while True:
        try:
            return done.get(timeout=POLL)
        except Empty:
            continue
