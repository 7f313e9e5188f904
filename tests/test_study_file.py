"""Files of studies: points of every kind, each mistake at its place, rows in every form; processes that die."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.spec import Mistakes, SpecError, read, tree_of
from hwsim.studies.distributions import distribution, draw_points
from hwsim.studies.file import load_study, read_points
from hwsim.studies.grid import Points
from hwsim.studies.point import Outcome
from hwsim.studies.pool import run_all
from hwsim.studies.sweeps import study
from tests.command import hwsim

HEAD = "hwsim: study/1\nmachine: d2l-laptop\nworkload: d2l/async-loop\n"


FIRST = [("1.38854 us", "y"), ("1.53908 us", "y")]


def points_of(text: str) -> Points:
    mistakes = Mistakes()
    found = read_points(read(text + "\n"), mistakes)
    mistakes.raise_if_any()
    assert found is not None
    return found


# ---- points


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("grid: {a: [1, 2], b: [x, 8 GB/s]}", [(1, "x"), (1, "8 GB/s"), (2, "x"), (2, "8 GB/s")]),
        ("grid: {a: 1..8:x2}", [(1,), (2,), (4,), (8,)]),
        ("grid: {a: [1..3, 7]}", [(1,), (2,), (3,), (7,)]),
        ("grid: {a: 5, b: [true]}", [(5, True)]),
        ("grid: {a: [1, 1, 2]}", [(1,), (2,)]),
        ("zip: {a: [1, 2, 1], b: [x, y, x]}", [(1, "x"), (2, "y"), (1, "x")]),
    ],
)
def test_points_are_as_written(text: str, points: list[tuple[object, ...]]) -> None:
    assert list(points_of(text)) == points


@given(st.integers(1, 60), st.integers(0, 5))
def test_a_latin_hypercube_has_a_value_in_every_part(count: int, seed: int) -> None:
    found = points_of(f"latin: {{points: {count}, seed: {seed}, of: {{a: 0.0..1.0, b: 1 GB/s..2 GB/s}}}}")
    column = sorted(float(str(values[0])) for values in found)
    for part, value in enumerate(column):
        assert part / count - 1e-5 <= value <= (part + 1) / count + 1e-5


def test_a_seed_gives_the_same_points_and_another_path_leaves_them() -> None:
    text = "random: {points: 5, seed: 4, of: {a: 1 us..9 us:log, b: [x, y]}}"
    assert list(points_of(text))[:2] == FIRST
    longer = list(points_of(text.replace("b: [x, y]", "b: [x, y], c: 1..3")))
    assert [values[:2] for values in longer] == list(points_of(text))
    assert list(points_of(text.replace("seed: 4", "seed: 5"))) != list(points_of(text))


@given(st.floats(0.001, 0.999))
def test_distributions_keep_to_their_ends(part: float) -> None:
    def at(value: Any) -> Any:
        found = distribution(tree_of(value), Mistakes())
        assert found is not None
        return found(part)

    assert 1 <= at("1..64:log") <= 64
    assert isinstance(at("1..64"), int)
    assert at(["a"]) == "a"
    assert at({"normal": {"mean": 8, "sd": 3, "low": 2, "high": 9}}) in range(2, 10)
    assert float(str(at({"normal": {"mean": "1 s", "sd": "5 s"}})).split()[0]) >= 0
    assert at("1..64") == 1 + int(64 * part)  # each whole number as often as another


def test_quantiles_are_drawn_evenly() -> None:
    half = sum(values[0] == 1 for values in draw_points([round], 2000, 1, latin=False)) / 2000  # integers
    assert 0.45 < half < 0.55


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ("{grid: {n: 9..1}}", "4:20: the lower limit of '9..1' is above the upper limit"),
        ("{grid: {n: []}}", "4:20: `n` has no values"),
        ("{grid: {n: [1 us, 8 GB/s]}}", "4:27: values of `n` have different dimensions"),
        ("{grid: {}}", "4:16: `grid` must map paths to values"),
        ("[1]", "4:9: expected one of grid, zip, random, latin, got a list"),
        ("{zip: {n: [1, 2], blocking: [true]}}", "`blocking` has 1 values, `n` has 2"),
        ("{latin: {points: 0, of: {n: 1..2}}}", "0 is below the minimum of 1"),
        ("{latin: {points: 5, of: {}}}", "names no path to sample"),
        ("{latin: {points: 5, of: {n: 1 s..2}}}", "goes from a time to a number"),
        ("{random: {points: 5, of: {n: {normal: {mean: 5 s, sd: 1 GB}}}}}", "`sd` is a size, but `mean` is a time"),
        ("{random: {points: 5, of: {n: {norml: {mean: 5}}}}}", "unknown distribution 'norml'"),
        ("{random: {points: 5, of: {n: {uniform: [1, 2]}}}}", "unknown distribution 'uniform'"),
        ("{random: {points: 5, of: {n: 3..1}}}", "the lower limit of '3..1' is above the upper limit"),
        ("{random: {points: 5, of: {n: 1..9:x2}}}", "cannot have steps"),
        ("{grid: {n: 1..1000, blocking: 1..1000}}", "1000 x 1000 = 1000000 points exceed the limit of 100000"),
        ("{grid: {m: [1, 2]}}", "4:17: the workload has no parameter 'm'"),
        ("{latin: {points: 2, of: {m: 1..2}}}", "4:34: the workload has no parameter 'm'"),
    ],
)
def test_a_mistake_in_points_is_said_at_its_place(points: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(f"{HEAD}points: {points}\n")
    found = hwsim("study", tmp_path / "s.yaml", code=2)
    assert said in found.stderr
    assert "hint" in found.stderr or "..1'" in said or "minimum" in said or "goes" in said or " is a size" in said
    assert [path.name for path in tmp_path.iterdir()] == ["s.yaml"], "nothing was begun"


def test_all_mistakes_of_a_file_come_together(tmp_path: Path) -> None:
    keys = "points: {grid: {n: 1}}\nmeasure: [time, mfuu]\nset: {n: 3}\nrows: x.txt\n"
    (tmp_path / "s.yaml").write_text(f"hwsim: study/1\nmachine: no-such\nworkload: d2l/async-loop\n{keys}")
    said = hwsim("study", tmp_path / "s.yaml", code=2).stderr
    for message in (
        "no-such",
        "5:17: unknown measure 'mfuu'",
        "6:7: `n` is both set and varied",
        "7:7: `rows` must be a .csv file",
    ):
        assert message in said
    hwsim("check", str(tmp_path / "s.yaml"), code=2)


# ---- rows


def test_rows_are_the_same_in_every_form(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(f"{HEAD}points: {{grid: {{n: [1, x, 3]}}}}\nmeasure: [op_count, time]\n")
    done = hwsim("study", tmp_path / "s.yaml", "-o", tmp_path / "rows.csv", "--json", "--journal", tmp_path / "j")
    assert done.stderr.splitlines()[-1:] == [f"wrote {tmp_path / 'rows.csv'}"]
    with (tmp_path / "rows.csv").open(newline="") as file:
        of_csv = list(csv.DictReader(file))
    of_json = json.loads(done.stdout)["rows"]
    times = [row["makespan_s"] for row in of_json]
    assert [float(row["makespan_s"]) if row["makespan_s"] else None for row in of_csv] == times
    assert [row["set"]["n"] for row in of_json] == [1, "x", 3]
    assert [row["measures"]["op_count"] for row in of_json if not row["error"]] == [
        float(row["by:op_count"]) for row in of_csv if row["by:op_count"]
    ]
    assert times[1] is None
    assert of_json[1]["error"] == of_csv[1]["error"]


def test_what_cannot_be_written_is_said_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(f"{HEAD}points: {{grid: {{n: [1, 2]}}}}\n")
    assert "there is no folder" in hwsim("study", tmp_path / "s.yaml", "-o", tmp_path / "no" / "rows.csv", code=2).stderr
    assert "a table must end in .csv, got" in hwsim("study", tmp_path / "s.yaml", "-o", tmp_path / "rows.xls", code=2).stderr
    assert not (tmp_path / "s.journal.jsonl").exists()


def test_a_study_may_come_from_standard_input_and_hold_its_files() -> None:
    workload = "{hwsim: workload/1, let: {n: 1}, program: [{busy: {device: cpu, time: $n * 1 us}}]}"
    text = f"hwsim: study/1\nmachine: d2l-laptop\npoints: {{zip: {{n: [1, 2]}}}}\nworkload: {workload}\n"
    done = hwsim("study", "-", stdin=text)
    assert [line.split()[1] for line in done.stdout.splitlines()[3:5]] == ["1.00", "2.00"]


# ---- processes


class Deadly:
    """A job that ends its process at some points: always, or the first time."""

    def __init__(self, always: set[int], once: set[int], folder: Path) -> None:
        self.always, self.once, self.folder = always, once, folder

    def __call__(self, values: tuple[object, ...]) -> Outcome:
        number = int(str(values[0]))
        mark = self.folder / str(number)
        if number in self.always or (number in self.once and not mark.exists()):
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Outcome(makespan_s=float(number))


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_a_process_that_dies_costs_only_the_point_that_ends_it(tmp_path: Path) -> None:
    job = Deadly({17}, {5, 40, 41}, tmp_path)
    found: dict[int, Outcome] = {}
    for number, outcome in run_all(job, {number: (number,) for number in range(60)}, workers=2):
        assert number not in found, "no point comes twice"
        found[number] = outcome
    assert sorted(found) == list(range(60))
    assert {number for number, outcome in found.items() if outcome.error} == {17}
    assert "ended abruptly (SIGKILL: out of memory, perhaps)" in found[17].error
    assert found[17].lost
    assert all(found[number].makespan_s == number for number in range(60) if number != 17)


def test_a_script_that_expects_no_processes_is_not_run_again(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(f"{HEAD}points: {{grid: {{n: 1..20}}}}\n")
    script = "import sys, hwsim\nprint('once')\nprint(len(hwsim.study(sys.argv[1], workers=2).rows))\n"
    (tmp_path / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "script.py", "s.yaml"], cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert (done.stdout.split(), done.stderr) == (["once", "20"], "")


def test_python_takes_the_file_too(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(f"{HEAD}points: {{grid: {{n: [1, 2]}}}}\nmeasure: op_count\n")
    found = study(tmp_path / "s.yaml")
    assert [dict(row.measures)["op_count"] > 0 for row in found.rows] == [True, True]
    assert found == study(load_study(tmp_path / "s.yaml"))
    with pytest.raises(SpecError, match="at least one worker"):
        study(tmp_path / "s.yaml", workers=0)
