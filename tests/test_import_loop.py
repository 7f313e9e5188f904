"""The closed loop: a run of hwsim, its trace as Kineto, the trace replayed with other durations, and hwsim's own run of those."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import hwsim
import hwsim.engine
from hwsim.exporters.tools import files
from hwsim.importers.formats import read
from hwsim.importers.replay import RecordingReplay, explain
from hwsim.views.trace.run import run_of

COPIES = ("d2l-gpu-workstation", "d2l/copy-overlap")
BUCKETS = ("d2l-4gpu-pcie", "d2l/bucketed-overlap")


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Mapping[tuple[str, str], RecordingReplay]:
    """The replays of the traces of two runs: streams that wait for each other, and four ranks with collectives."""
    replays = {}
    for machine, workload in (COPIES, BUCKETS):
        folder = tmp_path_factory.mktemp("traces")
        run = hwsim.simulate(machine, workload, expect=False)
        paths: list[Path] = []
        for name, content in files("kineto", run_of(run)).files.items():
            paths.append(folder / name)
            paths[-1].write_bytes(b"".join(content))
        replays[machine, workload] = explain(read("kineto", paths))
        assert hwsim.engine.simulate(replays[machine, workload].graph).makespan == pytest.approx(run.timeline.makespan, rel=1e-6)
    return replays


@pytest.mark.parametrize(
    ("names", "changed", "by_name"),
    [
        (COPIES, {"copy": 2}, {"Memcpy": 2.0}),
        (COPIES, {"copy": 4}, {"Memcpy": 4.0}),
        (COPIES, {"copy": 0.5}, {"Memcpy": 0.5}),
        (BUCKETS, {"bytes": "640 MB"}, {"nccl": 4.0}),
        (BUCKETS, {"bytes": "80 MB"}, {"nccl": 0.5}),
        (BUCKETS, {"flop": "0.804 TFLOP"}, {"backward": 2.0}),
        (BUCKETS, {"flop": "0.201 TFLOP"}, {"backward": 0.5}),
    ],
)
def test_a_replay_with_other_durations_is_the_run_with_them(
    names: tuple[str, str],
    changed: dict[str, object],
    by_name: dict[str, float],
    imported: Mapping[tuple[str, str], RecordingReplay],
) -> None:
    truth = hwsim.simulate(*names, set=changed, expect=False).timeline.makespan
    replayed = hwsim.engine.simulate(imported[names].scaled(1.0, by_name)).makespan
    assert replayed == pytest.approx(truth, rel=0.01)
