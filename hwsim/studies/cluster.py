"""Points on other machines, through dask.distributed (the extra [cluster]): `hwsim study FILE --cluster tcp://head:8786`.

Dask runs a batch again when its worker has died, also one that was finished and not yet fetched, so a point may run several
times; here its number counts, and the first outcome. Batches have keys of their own: equal points are not taken for one. A
batch that has ended several workers is dealt out again point by point; a point that does so alone is an outcome that says so.
"""

from __future__ import annotations

import importlib
import pickle
import secrets
import sys
import time
import zlib
from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from queue import Empty, SimpleQueue
from typing import Any, Final

from hwsim.spec import SpecError
from hwsim.studies.point import Outcome
from hwsim.studies.pool import LOST, Finished, Job, Values
from hwsim.version import __version__

BATCH: Final = 0.5  # seconds of points in a batch: dask takes milliseconds for each
AHEAD: Final = 2  # batches for each thread of a worker
LOOK: Final = 16  # batches between two looks at how many workers there are
ANSWERS: Final = 15.0  # seconds in which a scheduler answers
LISTENS: Final = 1.0  # seconds between two looks at whether the scheduler and workers are there
DESERTED: Final = 60.0  # seconds without any worker, after which a study ends
GO_ON: Final = "the same command goes on from the journal"

Batch = list[tuple[int, Values]]


class Cluster:
    """A scheduler of dask with its workers."""

    def __init__(self, address: str) -> None:
        """Connect, and refuse workers with another hwsim.

        Raises:
            SpecError: dask is not installed, no scheduler answers, or a worker has another version.
        """
        try:
            self._dask = importlib.import_module("distributed")
        except ModuleNotFoundError:
            raise _mistake("a cluster needs dask.distributed", "pip install 'hwsim[cluster]', here and on the workers") from None
        self.address = address
        try:
            self._client = self._dask.Client(address, timeout=ANSWERS, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            hint = "start one with `dask scheduler`, and workers with `dask worker ADDRESS`; its address is like tcp://head:8786"
            raise _mistake(f"no scheduler answers at '{address}' ({str(error) or type(error).__name__:.80})", hint) from None
        try:
            self._check()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave the cluster as it is."""
        self._client.close(timeout=2)

    def _workers(self) -> Mapping[str, int]:
        """Threads of each worker."""
        found: Mapping[str, int] = self._client.nthreads()
        return found

    def _check(self) -> None:
        if not self._workers():
            raise _mistake(f"the scheduler at '{self.address}' has no workers", f"start some: dask worker {self.address}")
        for worker, version in self._client.run(_version, on_error="return").items():
            if isinstance(version, Exception):
                raise _mistake(f"the worker {worker} cannot run hwsim ({version})", f"install hwsim {__version__} on it")
            if version != _version():
                (its, python), (version_here, python_here) = version, _version()
                raise _mistake(
                    f"the worker {worker} has hwsim {its} on Python {python}, here is {version_here} on {python_here}",
                    "answers may differ between versions: install the same on all",
                )

    def run(self, job: Job, waiting: Mapping[int, Values]) -> Finished:
        """Outcomes as they finish."""
        yield from _Dealer(self._dask, self._client, self._workers, job, waiting).outcomes()


class _Dealer:
    """Deals batches to a cluster."""

    def __init__(self, dask: Any, client: Any, workers: Any, job: Job, waiting: Mapping[int, Values]) -> None:
        self.dask, self.client, self.find_workers = dask, client, workers
        self.packed = zlib.compress(pickle.dumps(job))
        self.name = f"hwsim-{secrets.token_hex(6)}"
        self.waiting = dict(waiting)
        self.fresh = deque(waiting)
        self.alone: deque[int] = deque()
        self.batches: dict[Any, list[int]] = {}
        self.ended: SimpleQueue[Any] = SimpleQueue()
        self.seconds, self.ran, self.sent, self.threads = 0.0, 0, 0, 1

    def outcomes(self) -> Finished:
        """Outcomes as they finish; closing the generator cancels batches that have not begun."""
        try:
            while self.waiting:
                self._deal()
                yield from self._received(self._next())
        finally:
            if self.batches and self.client.status == "running":
                self.client.cancel(list(self.batches), force=True)

    def _next(self) -> Any:
        """Wait until a batch has ended.

        Raises:
            OSError: the scheduler is gone, or all workers are.
        """
        since = time.monotonic()
        while True:
            try:
                return self.ended.get(timeout=LISTENS)
            except Empty:
                since = self._seen(since)

    def _fetched(self, future: Any) -> Any:
        """The results of a batch that has ended; if its worker died since, another runs it again.

        Raises:
            OSError: the scheduler is gone, or all workers are.
        """
        since = time.monotonic()
        while True:
            try:
                return future.result(timeout=LISTENS)
            except TimeoutError:
                since = self._seen(since)

    def _seen(self, since: float) -> float:
        """When workers were last seen, which may be now; `since` is when they were before."""
        if self.client.status != "running":
            raise ConnectionError(f"the scheduler of the cluster is gone; {GO_ON}")
        if self.find_workers():
            return time.monotonic()
        if time.monotonic() - since > DESERTED:
            raise ConnectionError(f"the cluster has had no worker for {DESERTED:.0f} s; {GO_ON}")
        return since

    def _deal(self) -> None:
        if self.sent % LOOK == 0:
            self.threads = max(1, sum(self.find_workers().values()))  # integers
        mean = self.seconds / self.ran if self.ran else None
        while (self.alone or self.fresh) and len(self.batches) < AHEAD * self.threads:
            if self.alone:
                numbers = [self.alone.popleft()]
            else:
                even = -(-len(self.fresh) // (AHEAD * self.threads))
                size = 1 if not mean else max(1, min(int(BATCH / mean), even))
                numbers = [self.fresh.popleft() for _ in range(size)]
            batch = [(number, self.waiting[number]) for number in numbers]
            self.sent += 1
            key = f"{self.name}-{self.sent}"
            future = self.client.submit(run_batch, self.packed, batch, _version(), key=key, pure=False)
            self.batches[future] = numbers
            future.add_done_callback(self.ended.put)

    def _received(self, future: Any) -> Finished:
        numbers = self.batches.pop(future)
        try:
            seconds, rows = self._fetched(future)
        except self.dask.KilledWorker:
            if len(numbers) > 1:
                self.alone.extend(numbers)
                return
            rows, seconds = [(numbers[0], Outcome(error=f"{LOST}, on several workers: out of memory, perhaps", lost=True))], 0.0
        except RuntimeError as error:
            raise _mistake(str(error), "workers that come later need the same version, too") from None
        except self.dask.CancelledError:  # its data went with the last worker that had them
            self.alone.extend(numbers)
            return
        self.seconds, self.ran = self.seconds + seconds, self.ran + len(rows)
        for number, outcome in rows:
            if self.waiting.pop(number, None) is not None:
                yield number, outcome


def run_batch(packed: bytes, batch: Batch, version: tuple[str, str]) -> tuple[float, list[tuple[int, Outcome]]]:
    """Run points on a worker; seconds, and the outcomes by number.

    Raises:
        RuntimeError: the worker, which has come later, has another version.
    """
    if version != _version():
        raise RuntimeError(
            f"a worker has hwsim {_version()[0]} on Python {_version()[1]}, the study runs on {version[0]} and {version[1]}"
        )
    job = _unpacked(packed)
    began = time.perf_counter()
    rows = [(number, job(values)) for number, values in batch]
    return time.perf_counter() - began, rows


@lru_cache(maxsize=4)
def _unpacked(packed: bytes) -> Job:
    job: Job = pickle.loads(zlib.decompress(packed))
    return job


def _version() -> tuple[str, str]:
    return __version__, f"{sys.version_info.major}.{sys.version_info.minor}"


def _mistake(message: str, hint: str) -> SpecError:
    return SpecError.of(None, message, hint)


__all__ = ["Cluster", "run_batch"]
