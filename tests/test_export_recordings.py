"""Exports of recorded steps, and runs beside their own exports: ranks, kernels, collectives and steps stay what they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hwsim.api import simulate
from hwsim.importers.findings import find
from hwsim.importers.formats import files_of, read
from hwsim.importers.recording import Recording, What
from hwsim.importers.replay import ReplayOpKind, explain
from hwsim.importers.saved import save
from hwsim.importers.steps import one_step, steps
from hwsim.ticks import FEMTO
from tests.command import hwsim
from tests.recorded import US, Row, rank, recording
from tests.test_compare_traces import one


@pytest.fixture(scope="module")
def skewed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A step of two ranks, of which the second comes 60 us late."""
    path = tmp_path_factory.mktemp("import") / "step.npz"
    return save(explain(recording(rank(one()), rank(one(60), 1)), "exact"), path)


def on_gpu(given: Recording) -> list[list[tuple[str, int, int]]]:
    """Names, starts and ends of each rank's ops of GPUs."""
    found = []
    for recorded_rank in given.ranks:
        slices = recorded_rank.slices
        chosen = (slices.what >= What.KERNEL) & (slices.what <= What.SET)
        names = [recorded_rank.names[number] for number in slices.name[chosen].tolist()]
        found.append(sorted(zip(names, slices.start[chosen].tolist(), slices.end[chosen].tolist(), strict=True)))
    return found


@pytest.mark.parametrize("machine", ["dgx-a100", "laptop"])  # its GPUs are the recording's, whatever the machine has
@pytest.mark.parametrize("tool", ["kineto", "chakra"])
def test_a_recorded_step_is_exported_as_it_was_recorded(skewed: Path, machine: str, tool: str, tmp_path: Path) -> None:
    done = hwsim("export", tool, machine, skewed, "-o", tmp_path / "out")
    assert "2 x sizes of collectives" in done.output
    ends = {"kineto": ".json.gz", "chakra": ".et"}[tool]
    again = read(tool, sorted(path for path in (tmp_path / "out").iterdir() if path.name.endswith(ends)))
    assert on_gpu(again) == on_gpu(recording(rank(one()), rank(one(60), 1)))
    replay = explain(again)
    assert (replay.part == ReplayOpKind.COLLECTIVE).sum() == 2
    assert replay.waited.max() == 60 * US  # of the first rank, for the second


TRAININGS = {
    "data parallel": ("dgx-a100", "bert-large", 8, 2),
    "parameter servers": ("p3.16xlarge", "resnet50-dp", 8, 0),
    "one rank of a loop": ("d2l-4gpu-pcie", "d2l/multi-gpu-lenet", 1, 10),
}


@pytest.mark.parametrize("fold", ["--fold", "--no-fold"])
@pytest.mark.parametrize("name", TRAININGS)
def test_a_run_beside_its_own_export_differs_in_nothing(name: str, fold: str, tmp_path: Path) -> None:
    machine, workload, ranks, many = TRAININGS[name]
    done = hwsim("export", "kineto", machine, workload, "-o", tmp_path / "out", fold, "--json")
    exported = json.loads(done.stdout)
    if fold == "--no-fold":
        assert len(exported["files"]) == exported["ranks"] == ranks
    done = hwsim("compare", machine, workload, tmp_path / "out", "--json")
    both = json.loads(done.stdout)
    assert both["error"] == pytest.approx(0, abs=1e-9)
    if many:
        assert [both[side]["steps"] for side in ("first", "second")] == [many, many]


def test_a_last_mark_in_which_nothing_starts_is_no_step() -> None:
    rows = [
        *(Row(What.MARK, f"ProfilerStep#{number}", "main", 100 * number, 100) for number in (1, 2)),
        Row(What.MARK, "ProfilerStep#3", "main", 300, 30),
        *(Row(What.OP, "aten::mm", "main", start, 20) for start in (110, 210)),
    ]
    given = recording(rank(rows))
    assert [step.name for step in steps(given)] == ["ProfilerStep#1", "ProfilerStep#2"]
    busy = recording(rank([*rows, Row(What.OP, "aten::mm", "main", 305, 10)]))
    assert len(steps(busy)) == 3
    assert one_step(busy, "3").ranks[0].slices.what.tolist().count(What.OP) == 1


PLANS = ("{dp: 2, tp: 4}", "{dp: 4, tp: 2}", "{dp: 2, tp: 2, pp: 2}", "{dp: 8}", "{pp: 4, tp: 2}")


@pytest.mark.parametrize("tool", ["kineto", "chakra"])
@pytest.mark.parametrize("plan", PLANS)
def test_a_training_comes_back_whole(plan: str, tool: str, tmp_path: Path) -> None:
    """Every GPU of a team computes in its own file, every group meets, and what-ifs are those of the run."""
    train = (
        f"{{model: {{use: gpt2, layers: 4}}, parallel: {plan}, global_batch: 16, microbatch: 2, sequence: 128, sharding: none}}"
    )
    (tmp_path / "w.yaml").write_text(f"hwsim: workload/1\ntrain: {train}\n")
    hwsim("export", tool, "dgx-a100", tmp_path / "w.yaml", "--no-fold", "-o", tmp_path / "out")
    makespan = round(simulate("dgx-a100", tmp_path / "w.yaml").makespan_s * FEMTO)
    found = find(explain(read(tool, files_of([tmp_path / "out"], tool))))
    if "pp" not in plan:  # stages that send to one another are GPUs of one rank
        assert [len(explained.ops) for explained in found.replay.ranks] == [len(found.replay.ranks[0].ops)] * 8
    assert found.recorded == pytest.approx(makespan, abs=2)
    assert found.replayed == pytest.approx(makespan, rel=1e-3)
    assert found.unexplained <= 1e-3 * makespan
    assert not [row for row in found.unmapped if "without a launch" in row.why]
    assert not found.replay.meetings.notes
    assert all(row.waiting >= 0 for row in found.traffic) or len(found.replay.ranks) == 1
