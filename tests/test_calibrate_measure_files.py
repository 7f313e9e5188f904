"""Measurements in files: kept whole, gone on from, compared; and what the command line says of them."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.spec import SpecError
from hwsim_calibrate import environment, text
from hwsim_calibrate.case import Case
from hwsim_calibrate.session import Plan, measure
from hwsim_calibrate.store import Amounts, Measurements, Row, load
from hwsim_calibrate.suites import suite
from hwsim_calibrate.validate import Report
from hwsim_calibrate.workload_cases import cases_for
from tests.command import hwsim

DATA = Path(environment.__file__).parent / "data"
ROW = Row(
    "kernels", "add n=4", "add", {"n": 4, "shape": (2, 2), "dtype": "fp32"}, Amounts(4, 32, 16, 1), (2e-7, 1e-7), "cpu", ("few",),
    ((2e-7, 3e-7), (1e-7,)), (0.0, 2.0),
)  # fmt: skip
ENOUGH = 1e6  # seconds: the rounds end a run, however busy the machine is


@pytest.fixture
def two_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of the suite `kernels`."""
    cases = [Case("kernels", name, {"n": 1}, Amounts(), lambda _: lambda: sum(range(100))) for name in ("add", "sum")]
    kernels = SimpleNamespace(cases=lambda _: cases)
    monkeypatch.setattr("hwsim_calibrate.session.suite", lambda name: kernels if name == "kernels" else suite(name))


def written(path: Path, **changes: Any) -> Path:
    data = Measurements({"cpu": {"model": "Abacus"}}, (ROW,)).to_json() | changes
    path.write_text(json.dumps(data), "utf-8")
    return path


@pytest.mark.parametrize("name", ["m.json", "m.json.gz"])
def test_what_is_saved_is_loaded(tmp_path: Path, name: str) -> None:
    found = Measurements({"cpu": {"model": "Abacus"}}, (ROW,), {"seed": 1}, {"gpu": "none"})
    assert load(found.save(tmp_path / name)) == found


times = st.floats(1e-9, 1e3).map(lambda value: float(f"{value:.5g}"))


@given(st.lists(times, min_size=1, max_size=12), st.sampled_from(["cpu", "wall", "device"]), st.text(min_size=1, max_size=8))
def test_any_row_is_loaded_as_it_was_saved(
    tmp_path_factory: pytest.TempPathFactory, seconds: list[float], clock: Any, name: str
) -> None:
    row = Row("s", name, name, {"n": 3, "x": None, "y": True}, Amounts(), tuple(seconds), clock, (), (), (0.0,) * len(seconds))
    path = tmp_path_factory.mktemp("rows") / "m.json.gz"
    assert load(Measurements({}, (row,)).save(path)).rows == (row,)


def test_the_same_measurements_are_the_same_file(tmp_path: Path) -> None:
    found = Measurements({}, (ROW,))
    assert found.save(tmp_path / "a.json.gz").read_bytes() == found.save(tmp_path / "b.json.gz").read_bytes()


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = Measurements({}, (ROW,)).save(tmp_path / "m.json")
    before = path.read_bytes()
    with pytest.raises(ValueError, match="not JSON compliant"):
        Measurements({"load": float("nan")}, (ROW,)).save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["m.json"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not JSON"),
        (b"{", "m.json:1:2"),
        (b"[]", "not a file of measurements"),
        (b'{"hwsim": "machine/1"}', "measurements/1"),
        (b"\x1f\x8b\x08nonsense", "cannot be read as JSON"),
        (gzip.compress(b'{"hwsim": "measurements/1"}', mtime=0)[:-9], "cannot be read as JSON"),
        (b"{\x80}", "cannot be read as JSON"),
        (b'{"hwsim": "measurements/1", "rows": [NaN]}', "'NaN' is not a number"),
        (b'{"hwsim": "measurements/1", "rows": 3}', "`rows` is not a list"),
        (b'{"hwsim": "measurements/1", "environment": 3}', "`environment` is not a mapping"),
    ],
)
def test_what_is_no_file_of_measurements_is_said_to_be_none(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(content)
    with pytest.raises(SpecError) as caught:
        load(path)
    assert said in str(caught.value)
    hwsim("calibrate", "show", str(path), code=2)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("seconds", [], "`seconds`"),
        ("seconds", [-1.0], "expected a number of at least 0"),
        ("seconds", [0.0], "positive times"),
        ("seconds", ["fast"], "expected a number of at least 0"),
        ("clock", "sun", "`clock`: expected"),
        ("op", "", "expected names"),
        ("samples", [[1.0]], "one entry per entry"),
        ("work", {"flops": 1}, "flops"),
        ("params", 3, "rows[0]"),
    ],
)
def test_a_row_that_cannot_be_is_named(tmp_path: Path, key: str, value: object, said: str) -> None:
    row = Measurements({}, (ROW,)).to_json()["rows"][0] | {key: value}
    with pytest.raises(SpecError) as caught:
        load(written(tmp_path / "m.json", rows=[row]))
    assert said in str(caught.value)
    assert "rows[0]" in str(caught.value)


def test_all_wrong_rows_are_said_at_once(tmp_path: Path) -> None:
    row = Measurements({}, (ROW,)).to_json()["rows"][0]
    with pytest.raises(SpecError) as caught:
        load(written(tmp_path / "m.json", rows=[row, row, {}]))
    assert "occurs twice" in str(caught.value)
    assert "rows[2]: 'seconds' is missing" in str(caught.value)


def test_later_rows_take_the_place_of_earlier_ones_of_the_same_case() -> None:
    other = Row("kernels", "sub", "subtract", {}, Amounts(), (1.0,))
    again = Row("kernels", "add n=4", "add", {}, Amounts(), (5.0,))
    assert Measurements({}, (ROW, other)).with_rows([again]).rows == (again, other)


@pytest.mark.usefixtures("two_cases")
def test_a_run_goes_on_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "m.json.gz"
    first = measure(Plan(("kernels",), budget=ENOUGH, rounds=1), path)
    assert load(path) == load(
        Measurements(first.environment, first.rows, first.settings, first.skipped).save(tmp_path / "again.json")
    )
    assert {len(row.seconds) for row in first.rows} == {1}
    second = measure(Plan(("kernels",), budget=ENOUGH, rounds=2), path)
    assert {row.seconds[0] for row in second.rows} == {float(f"{row.seconds[0]:.5g}") for row in first.rows}
    assert {len(row.seconds) for row in second.rows} == {2}
    assert second.settings["spent"] >= first.settings["spent"]


@pytest.mark.usefixtures("two_cases")
def test_a_spent_budget_measures_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "m.json.gz"
    found = measure(Plan(("kernels",), budget=ENOUGH, rounds=1), path)
    Measurements(found.environment, found.rows, {**found.settings, "spent": ENOUGH}).save(path)
    again = measure(Plan(("kernels",), budget=ENOUGH, rounds=2), path)
    assert {len(row.seconds) for row in again.rows} == {1}


def small(case: Case) -> bool:
    return case.op == "fill" and case.params["bytes"] == 4096


@pytest.mark.usefixtures("two_cases")
def test_other_suites_join_a_file_with_a_budget_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "m.json.gz"
    found = measure(Plan(("kernels",), budget=ENOUGH, rounds=1), path)
    Measurements(found.environment, found.rows, {**found.settings, "spent": ENOUGH}).save(path)
    again = measure(Plan(("allocation",), budget=ENOUGH, rounds=1, keep=small), path)
    assert {row.suite for row in again.rows} == {"kernels", "allocation"}
    assert again.settings["suites"] == ["allocation"]
    assert again.settings["date"] >= again.environment["date"]
    assert [run["suites"] for run in again.settings["before"]] == [["kernels"]]
    more = measure(Plan(("allocation",), budget=ENOUGH, rounds=2, keep=small), path)
    assert more.settings["before"] == again.settings["before"]


@pytest.mark.usefixtures("two_cases")
def test_what_an_earlier_run_did_not_reach_is_not_missing_once_it_is_measured(tmp_path: Path) -> None:
    path = tmp_path / "m.json.gz"
    assert measure(Plan(("kernels",), budget=0.0), path).skipped
    assert not measure(Plan(("kernels",), budget=ENOUGH, rounds=1), path).skipped


def test_a_file_of_another_machine_is_not_gone_on_from(tmp_path: Path) -> None:
    here = environment.fingerprint()
    path = Measurements(here | {"cpu": here["cpu"] | {"model": "Abacus"}}, (ROW,)).save(tmp_path / "m.json")
    before = path.read_bytes()
    result = hwsim("calibrate", "measure", "--suite", "kernels", "-o", str(path), code=2)
    assert "it was measured on another machine (cpu model: Abacus, now" in result.output
    assert path.read_bytes() == before


def test_a_suite_that_a_machine_lacks_is_named_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hwsim_calibrate.suites.gpu.missing", lambda: "no GPU here")
    found = measure(Plan(("gpu",), budget=5.0), tmp_path / "m.json")
    assert found.skipped == {"gpu": "no GPU here"}
    assert "no GPU here" in text.format_measurements(found)


def test_what_the_budget_does_not_reach_is_named() -> None:
    found = measure(Plan(("allocation",), budget=0.0))
    assert found.rows == ()
    assert found.skipped["allocation/mapped"] == "4 of its cases did not fit into the budget"


def test_a_workload_s_own_ops_are_measured_at_their_shapes() -> None:
    cases, left = cases_for("d2l/async-matmul")
    assert {case.op: case.params.get("shape", case.params.get("n")) for case in cases} == {
        "normal": 1_000_000,
        "matmul": (1000, 1000, 1000),
    }
    assert {case.suite for case in cases} == {"workload"}
    assert left == {}


def test_ops_that_are_no_call_of_a_library_are_said_to_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(
        "hwsim: workload/1\nprogram:\n"
        "  - matmul: {name: a, device: cpu, m: 8, n: 8, k: 8, dtype: bf16}\n"
        "  - matmul: {name: b, device: gpu0, m: 8, n: 8, k: 8}\n"
        "  - repeat: {times: 3, do: [{elementwise: {name: c, device: cpu, count: 64, function: exp}}]}\n"
        "  - busy: {name: d, device: cpu, time: 1 ms}\n"
    )
    cases, left = cases_for(str(path))
    assert [case.op for case in cases] == ["exp"]
    assert set(left) == {"a", "b", "d"}
    assert "suite gpu" in left["b"]


def test_a_wrong_workload_is_a_mistake_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text("hwsim: workload/1\nprogram:\n  - matmull: {m: 8}\n")
    result = hwsim("calibrate", "measure", "--for", str(path), code=2)
    assert "w.yaml:3:5" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("measure", "--suite", "kernel"), "did you mean 'kernels'?"),
        (("measure", "-o", "nowhere/m.json"), "there is no folder 'nowhere'"),
        (("run", "-o", "nowhere/here.yaml"), "there is no folder 'nowhere'"),
        (("measure", "--budget", "0"), "0"),
        (("show", "epyc-zen3-vm-2cor"), "did you mean 'epyc-zen3-vm-2core'?"),
        (("show", "nothing.json"), "'nothing.json' is neither a file"),
        (("fit",), "FILES"),
        (("validate",), "FILES"),
        (("cure",), "No such command"),
    ],
)
def test_mistakes_in_arguments_are_said_before_anything_is_measured(arguments: tuple[str, ...], said: str) -> None:
    result = hwsim("calibrate", *arguments, code=2)
    assert said in result.output


@dataclass(frozen=True)
class Made:
    """In the place of a fitted machine."""

    name: str

    def yaml(self) -> str:
        return f"hwsim: machine/1\nclass: ideal\nname: {self.name}\n"


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What `run` does one after another, without doing it."""
    done: list[str] = []

    def measured(plan: Plan, path: Path, **_: object) -> Measurements:
        done.append(f"measured {', '.join(plan.suites) or 'all'} and {len(plan.more)} ops for {plan.budget:g} s")
        found = Measurements({}, (ROW,))
        found.save(path)
        return found

    def fitted(found: Measurements, *, name: str, seed: int = 0) -> Made:
        done.append(f"fitted {len(found.rows)} rows")
        return Made(name)

    def validated(machine: Made, **_: object) -> Report:
        done.append(f"validated {machine.name}")
        return Report(machine.name)

    monkeypatch.setattr("hwsim_calibrate.session.measure", measured)
    monkeypatch.setattr("hwsim_calibrate.fit.fit", fitted)
    monkeypatch.setattr("hwsim_calibrate.validate.validate", validated)
    return done


def test_a_run_measures_fits_validates_and_writes(tmp_path: Path, stages: list[str]) -> None:
    path = tmp_path / "here.yaml"
    hwsim("calibrate", "run", "-o", str(path))
    assert stages == ["measured all and 0 ops for 80 s", "fitted 1 rows", "validated here"]
    assert path.read_text("utf-8") == "hwsim: machine/1\nclass: ideal\nname: here\n"
    assert load(tmp_path / "here.measurements.json.gz").rows == (ROW,)
    assert "resuming from" in hwsim("calibrate", "run", "-o", str(path)).output
    assert "resuming from" not in hwsim("calibrate", "run", "--fresh", "-o", str(path)).output


def test_a_run_for_a_workload_measures_its_ops_instead_of_all_suites(tmp_path: Path, stages: list[str]) -> None:
    arguments = ("run", "--for", "d2l/async-matmul", "--budget", "7", "-o", str(tmp_path / "here.yaml"))
    hwsim("calibrate", *arguments)
    assert stages[0] == "measured all and 2 ops for 7 s"


def test_of_several_files_the_last_counts(tmp_path: Path, stages: list[str]) -> None:
    names = [str(Measurements({}, (ROW,)).save(tmp_path / name)) for name in ("a.json", "b.json")]
    result = hwsim("calibrate", "fit", *names)
    assert result.output == "hwsim: machine/1\nclass: ideal\nname: a\n"
    assert stages == ["fitted 1 rows"]


@pytest.mark.parametrize("path", sorted(DATA.glob("*.json.gz")), ids=lambda path: path.name)
def test_stored_measurements_are_whole_and_say_what_disturbed_them(path: Path) -> None:
    found = load(path)
    assert path.stat().st_size < 2_000_000
    assert len(found.rows) > 500
    assert {"kernels", "memory", "storage"} <= {row.suite for row in found.rows}
    assert found.environment["cpu"]["model"]
    assert found.environment["software"]["blas_core"]
    assert "/" not in json.dumps(found.environment.get("variables", {}))
