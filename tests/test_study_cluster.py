"""Points on a real cluster of dask on this computer: dead workers cost no row and double none, other versions are refused."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hwsim.spec import SpecError
from hwsim.studies import cluster, load_study, study
from hwsim.studies.cluster import Cluster, run_batch
from hwsim.studies.point import Outcome

distributed = pytest.importorskip("distributed", exc_type=ImportError)
pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="workers are killed"),
    pytest.mark.filterwarnings("ignore"),
]
STUDY = """\
hwsim: study/1
machine: d2l-laptop
workload: d2l/async-loop
points: {latin: {points: POINTS, seed: 3, of: {n: 100..2000:log, workload.runtime.queue_depth: 1..64}}}
"""


@pytest.fixture(scope="module")
def local() -> Iterator[Any]:
    """A scheduler and two workers, each a process with one thread."""
    dask = pytest.importorskip("dask")
    quiet = {"distributed.worker.daemon": True, "distributed.logging.distributed": "critical"}
    variables = {"PYTHONPATH": str(Path(__file__).parents[1])}
    with (
        dask.config.set(quiet),
        contextlib.suppress(TimeoutError),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            host="127.0.0.1",
            silence_logs=60,
            env=variables,
        ) as found,
    ):
        yield found


@pytest.fixture
def lent(local: Any) -> Iterator[Cluster]:
    found = Cluster(local.scheduler_address)
    yield found
    found.close()


def _file(folder: Path, points: int) -> Path:
    (folder / "s.yaml").write_text(STUDY.replace("POINTS", str(points)))
    return folder / "s.yaml"


def _pids(lent: Cluster) -> list[int]:
    return sorted(lent._client.run(os.getpid).values())


@pytest.mark.slow
def test_workers_that_are_killed_cost_no_row_and_double_none(lent: Cluster, tmp_path: Path) -> None:
    asked = load_study(_file(tmp_path, 800))
    here = study(asked, workers=1)
    killed: list[int] = []

    def end_one() -> None:
        killed.append(_pids(lent)[0])
        os.kill(killed[-1], signal.SIGKILL)

    def kill(done: int, points: int) -> None:
        if done in (200, 500):  # on another thread: the cluster is asked who is there
            threading.Thread(target=end_one).start()

    journal = tmp_path / "j"
    found = study(asked, lent=lent, journal=journal, progress=kill)
    assert len(killed) == 2
    assert found.to_csv() == here.to_csv()
    assert journal.read_bytes().count(b"\n") == 801


@pytest.mark.slow
def test_rows_are_those_of_this_process(lent: Cluster, tmp_path: Path) -> None:
    asked = load_study(_file(tmp_path, 12))
    assert study(asked, lent=lent).to_csv() == study(asked, workers=1).to_csv()
    assert study(asked, lent=lent).to_csv() == study(asked, workers=1).to_csv(), (
        "equal points are run again under keys of their own"
    )


class Fatal:
    """A job whose point 3 ends every process that runs it."""

    def __call__(self, values: tuple[object, ...]) -> Outcome:
        if values == (3,):
            os.kill(os.getpid(), signal.SIGKILL)
        return Outcome(makespan_s=float(str(values[0])))


@pytest.mark.slow
def test_a_point_that_ends_its_workers_is_named_and_the_others_are_rows(lent: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    found = dict(lent.run(Fatal(), {number: (number,) for number in range(8)}))
    assert sorted(found) == list(range(8))
    assert [number for number, outcome in found.items() if outcome.error] == [3]
    assert found[3].lost
    assert "ended abruptly" in found[3].error
    until = time.monotonic() + 60
    while len(lent._workers()) < 2 and time.monotonic() < until:
        time.sleep(0.1)  # the nannies start new ones


@pytest.mark.slow
def test_another_version_on_a_worker_is_refused(lent: Cluster, local: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "__version__", "99.0")
    with pytest.raises(SpecError, match=r"has hwsim .* here is 99.0"):
        Cluster(local.scheduler_address)
    with pytest.raises(RuntimeError, match="a worker has hwsim"):
        run_batch(b"", [], ("1.0", "3.11"))


def test_nobody_at_an_address_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ANSWERS", 0.5)
    with pytest.raises(SpecError, match="no scheduler answers"):
        Cluster("tcp://127.0.0.1:9")


class Lost:
    """The future of a batch whose worker died after it had ended, its client, and names of errors that do not come."""

    status = "running"
    KilledWorker = CancelledError = ZeroDivisionError

    def __init__(self, silent: int) -> None:
        self.silent = silent

    def result(self, timeout: float) -> tuple[float, list[tuple[int, Outcome]]]:
        self.silent -= 1
        if self.silent >= 0:
            raise TimeoutError
        return 0.1, [(0, Outcome(makespan_s=1.0))]


def _dealt(lost: Lost, workers: dict[str, int]) -> cluster._Dealer:
    dealer = cluster._Dealer(lost, lost, lambda: workers, Fatal(), {0: (0,)})
    dealer.batches[lost] = [0]
    return dealer


def test_a_batch_that_is_lost_after_its_end_is_waited_for_while_there_are_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "DESERTED", -1.0)
    lost = Lost(silent=3)
    assert [number for number, _ in _dealt(lost, {"one": 1})._received(lost)] == [0]
    lost = Lost(silent=3)
    with pytest.raises(ConnectionError, match="no worker"):
        list(_dealt(lost, {})._received(lost))
