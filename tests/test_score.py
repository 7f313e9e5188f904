"""What do measurements of the user change? Laws of the update, of the files, and of the numbers that follow from them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import hwsim
from hwsim.prepare import load_machine
from hwsim.results.errors import FEWEST, updated
from hwsim.scoring import Measurement, score
from hwsim.scoring.answer import save
from hwsim.spec import Place, SpecError
from hwsim.version import __version__
from hwsim_calibrate.logs import measurements
from tests.command import hwsim as command
from tests.test_docs import ROOT

PRIOR = 0.1
HERE = Place("table", 1, 1)
NCCL = """# Collective test starting: all_reduce_perf
# Rank  7 Group  0 Pid 1 on host device  7
{rows}
"""


def scores(folder: Path, regime: str, *ratios: float, **more: object) -> str:
    rows = [{"regime": regime, "ratio": ratio, "run": f"run {number}", **more} for number, ratio in enumerate(ratios)]
    path = folder / "scores.yaml"
    path.write_text(json.dumps({"hwsim": "scores/1", "version": __version__, "rows": rows}))
    return str(path)


@pytest.mark.parametrize("count", [3, 10, 30, 100])
def test_perfect_measurements_narrow_but_never_to_zero(count: int) -> None:
    found, before = updated(PRIOR, PRIOR, [0.0] * count), updated(PRIOR, PRIOR, [0.0] * (count - 1))
    assert found.correction == 0
    assert 0 < found.half[90] < 1.645 * PRIOR
    assert count == FEWEST or found.half[90] < before.half[90]
    assert found.half[50] < found.half[80] < found.half[90]


@pytest.mark.parametrize("seed", range(5))
def test_the_interval_is_never_narrower_than_the_measurements_and_their_order_does_not_matter(seed: int) -> None:
    draw = random.Random(seed)
    logs = [draw.gauss(0.05, 0.2) for _ in range(draw.randint(3, 40))]
    found = updated(PRIOR, PRIOR, logs)
    assert found == updated(PRIOR, PRIOR, draw.sample(logs, len(logs)))
    off = [log - found.correction for log in logs]
    assert found.scatter**2 >= sum(value**2 for value in off) / (len(logs) - 1) - 1e-12
    assert sum(abs(value) <= found.half[90] for value in off) >= 0.9 * len(logs) or len(logs) < 9
    assert updated(PRIOR, PRIOR, [-log for log in logs]) == found._replace(correction=-found.correction)


@pytest.mark.parametrize("logs", [[], [0.3], [0.3, 0.3]])
def test_few_runs_change_nothing(logs: list[float]) -> None:
    assert updated(PRIOR, PRIOR, logs) == updated(PRIOR, PRIOR, [])


def test_a_median_within_its_error_is_not_corrected() -> None:
    assert updated(PRIOR, PRIOR, [-0.2, 0.01, 0.2]).correction == 0


@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_scaled_measurements_give_the_scaled_prediction(factor: float, tmp_path: Path) -> None:
    path = scores(tmp_path, "step/cnn", *[factor] * 9)
    plain, found = (hwsim.simulate("dgx-h100", "resnet50-dp", set=more, expect=False) for more in ({}, {"machine.scores": path}))
    assert found.makespan_s == plain.makespan_s
    assert found.interval.expected == pytest.approx(factor * plain.makespan_s)
    assert found.interval.half < 0.7 * plain.interval.half
    assert found.interval.low < found.interval.expected < found.interval.high
    joules, before = (run.to_json()["energy"]["joules"]["value"] for run in (found, plain))
    assert joules == pytest.approx(factor * before)
    assert "9 measurements of scores.yaml" in str(found)
    estimates = [
        hwsim.estimate("dgx-h100", "resnet-50", set=more, global_batch=64).to_json() for more in ({}, {"machine.scores": path})
    ]
    assert estimates[1]["interval"]["factor"] == pytest.approx(factor)
    exchange = {"hwsim": "workload/1", "program": [{"allreduce": {"among": "gpu*", "bytes": "64 MB"}}]}
    assert not hwsim.simulate("dgx-h100", exchange, set={"machine.scores": path}).interval.scored


def test_runs_of_another_gpu_are_not_used_and_rows_of_one_run_count_once(tmp_path: Path) -> None:
    for path in (scores(tmp_path, "step/cnn", *[1.2] * 9, gpu="another"), scores(tmp_path, "step/cnn", *[1.2] * 9, run="one")):
        found = hwsim.simulate("dgx-h100", "resnet50-dp", set={"machine.scores": path}, expect=False)
        assert not found.interval.scored


def test_a_served_model_has_the_intervals_of_its_measurements(tmp_path: Path) -> None:
    path = scores(tmp_path, "tpot/dense", *[1.1] * 9)
    services = [
        hwsim.simulate("dgx-h100", "llama3-8b-serving", set=more, expect=False).to_json()["serving"][0]["interval"]
        for more in ({}, {"machine.scores": path})
    ]
    assert services[1]["tpot"]["factor"] == pytest.approx(1.1)
    assert services[1]["ttft"] == services[0]["ttft"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "m.csv:1:1: no column `measure`"),
        ("measure,value\nstep\n", "m.csv:2:1: expected 2 columns, got 1"),
        ("measure,value\nstep,\n", "m.csv:2:1: the row has no `value`"),
        ("measure,value\n", "m.csv:1:1: no measurements"),
        ("measure,value\nstep,3 GB\n", "m.csv:2:1: step: '3 GB' is a size"),
        ("measure,value\nstep,-1\n", "m.csv:2:1: step: expected a number above 0"),
        ("measure,value\nstop,1\n", "m.csv:2:1: the run predicts no 'stop'"),
        ("measure,value,nothing\nstep,1,2\n", "m.csv:2:1: the workload has no parameter 'nothing'"),
    ],
)
def test_mistakes_of_a_table_have_their_place(text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.csv").write_text(text)
    with pytest.raises(SpecError) as error:
        score("dgx-h100", "resnet50-dp", "m.csv")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"version": "0"}, "these predictions are of hwsim 0"), ({"rows": [{"regime": "a", "ratio": 0, "run": ""}]}, "ratio")],
)
def test_mistakes_of_a_file_of_scores_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = Path(scores(tmp_path, "step/cnn", 1.0))
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(SpecError, match=message):
        load_machine(f"hwsim: machine/1\nuse: dgx-h100\nscores: {path}\n")
    with pytest.raises(SpecError, match="no file of scores"):
        load_machine("hwsim: machine/1\nuse: dgx-h100\nscores: none.yaml\n")


def test_a_saved_run_and_its_files_of_scores(tmp_path: Path) -> None:
    document = hwsim.simulate("dgx-h100", "resnet50-dp", expect=False).to_json()
    step = document["trainings"][0]["step_s"]
    rows = [
        Measurement("step", 1.02 * step, HERE),
        Measurement("images_per_s", 2 * document["trainings"][0]["images_per_s"], HERE),
    ]
    found = score(document, None, rows)
    assert found.judged == [False, True]
    assert [row.ratio for row in found.rows] == pytest.approx([0.5, 1.02])
    assert str(found).startswith("1 of 2 measured values are inside")
    path = save(found.rows, tmp_path / "scores.yaml")
    once = path.read_text()
    assert save(found.rows, path).read_text() == once
    assert hwsim.check(path) == ()
    with pytest.raises(SpecError, match="settings cannot change a saved run"):
        score(document, None, rows, set={"n": 1})


def test_logs_state_their_workload(tmp_path: Path) -> None:
    size, seconds = 1 << 30, 4e-3
    row = (
        f"{size} {size // 4} float sum -1 {seconds * 1e6} {size / seconds / 1e9:.2f} {1.75 * size / seconds / 1e9:.2f} 0 1 1 1 0"
    )
    log = tmp_path / "log.txt"
    log.write_text(NCCL.format(rows=row))
    (pair,) = score("dgx-h100", None, log).pairs
    assert pair.measured == pytest.approx(1.75 * size / seconds, rel=1e-3)
    assert pair.prediction.regime == "nccl/large"
    assert {found.measure for found in measurements.read(ROOT / "tests/data/logs/fio.json")} == {"time"}
    (tmp_path / "t.csv").write_text("measure,value\nstep,1 s\n")
    done = command("score", "dgx-h100", "resnet50-dp", tmp_path / "t.csv", "--expect-inside", "--json", code=3)
    assert json.loads(done.stdout)["rows"][0]["inside"] is False
