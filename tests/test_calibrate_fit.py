"""What a fit makes of measurements: known numbers come back, outliers do not bend them, the machine file simulates."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import hwsim
from hwsim.devices.kernels import Corrections, MeasuredFunctions
from hwsim.devices.typical_functions import estimate_function
from hwsim.devices.work import elementwise_call, product_call
from hwsim_calibrate import store
from hwsim_calibrate.calls import call_from, call_of, measured_as
from hwsim_calibrate.fit import Fitted, fit
from hwsim_calibrate.fit.corrections import correct
from hwsim_calibrate.fit.holdout import alternate, held_out
from hwsim_calibrate.fit.kernels import (
    FittedKernels,
    TimedCall,
    capacities_of,
    fit_kernels,
    split_core,
    timed_calls,
    with_rest,
    without_corrections,
)
from hwsim_calibrate.fit.model import Model, entry_of
from hwsim_calibrate.store import load
from tests.calibrate_cases import TRUTH, made_up
from tests.present import present

EACH = ("add", "multiply", "exp", "sum", "copyto", "normal")
DATA = Path(store.__file__).parent / "data"


@cache
def found() -> FittedKernels:
    measured = made_up()
    return fit_kernels(timed_calls(measured), capacities_of(measured), seed=1, bootstraps=12)


@cache
def whole() -> Fitted:
    return fit(made_up(), name="made up")


def test_capacities_come_back_within_ten_percent() -> None:
    for level in ("L3", "memory"):
        assert found().kernels.levels[level].beyond == pytest.approx(TRUTH.levels[level].beyond, rel=0.10)


@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
def test_flops_come_back_within_five_percent(dtype: str) -> None:
    assert found().kernels.products[dtype].flop == pytest.approx(TRUTH.products[dtype].flop, rel=0.05)


def test_bandwidth_from_memory_comes_back_within_five_percent() -> None:
    for inputs, function in ((2, "add"), (1, "copyto")):
        call = elementwise_call(function, dtype="fp64", count=3e7, inputs=inputs, into="out")
        told = without_corrections(found().kernels).time(call).seconds
        assert told == pytest.approx(TRUTH.time(call).seconds, rel=0.05)


@pytest.mark.parametrize("function", ["add", "exp", "sum", "normal"])
def test_what_a_call_takes_comes_back(function: str) -> None:
    ours, theirs = found().kernels.functions[function], TRUTH.functions[function]
    assert ours.call == pytest.approx(theirs.call, rel=0.15)


def test_most_intervals_hold_the_truth() -> None:
    truths: dict[tuple[str, ...], float] = {
        ("functions", name, "each", "fp64"): TRUTH.functions[name].each["fp64"] for name in EACH
    }
    truths |= {("products", dtype, "flop"): 1 / product.flop for dtype, product in TRUTH.products.items()}
    truths |= {("levels", level, "beyond"): TRUTH.levels[level].beyond for level in ("L3", "memory")}
    of = found().intervals
    late = 1.02  # noise only ever adds: the quietest of five rounds is a little late still
    inside = [of[name].low / late <= value <= of[name].high * late for name, value in truths.items()]
    assert np.mean(inside) >= 0.8
    assert all(interval.low <= interval.value <= interval.high for interval in of.values())


def test_a_tenth_of_spoilt_cases_does_not_bend_the_rest() -> None:
    spoilt = made_up(spoilt=0.1, seed=3)
    kernels = fit_kernels(timed_calls(spoilt), capacities_of(spoilt), bootstraps=0).kernels
    assert kernels.products["fp64"].flop == pytest.approx(TRUTH.products["fp64"].flop, rel=0.15)
    assert kernels.levels["memory"].beyond == pytest.approx(TRUTH.levels["memory"].beyond, rel=0.15)


def test_the_fit_and_the_simulator_have_the_same_formula() -> None:
    rows = timed_calls(made_up())
    model = Model([row.call for row in rows], capacities_of(made_up()))
    x = np.log([found().intervals[name].value for name in model.names])
    kernels = without_corrections(found().kernels)
    assert model.times(x)[0] == pytest.approx([kernels.time(row.call).seconds for row in rows], rel=1e-3)


def test_derivatives_are_those_of_the_times() -> None:
    rows = timed_calls(made_up())[::9]
    model = Model([row.call for row in rows], capacities_of(made_up()))
    times, slopes = model.times(model.start)
    for name in (
        ("levels", "memory", "beyond"),
        ("levels", "L3", "sharpness"),
        ("overlap",),
        ("functions", "add", "each", "fp64"),
    ):
        bent = model.start.copy()
        bent[model.names[name]] += 1e-4
        assert (model.times(bent)[0] - times) / 1e-4 == pytest.approx(slopes[:, model.names[name]], rel=0.05, abs=1e-10)


def test_sizes_held_out_are_told_as_well_as_the_noise_allows() -> None:
    heldout = present(whole().heldout)
    assert heldout.median < 0.03
    assert heldout.p90 < 0.08
    assert heldout.ci95[0] <= heldout.median <= heldout.ci95[1]


def test_the_smallest_and_the_largest_sizes_are_never_held_out() -> None:
    rows = timed_calls(made_up())
    left = alternate(rows)
    counts = [row.call.count for number, row in enumerate(rows) if number in left and row.call.function == "add"]
    assert max(counts) < max(row.call.count for row in rows if row.call.function == "add")


def test_the_machine_file_loads_and_simulates_every_measured_call_as_measured() -> None:
    machine = whole().yaml()
    for row in timed_calls(made_up())[::60]:
        kind, keys = "elementwise", {}
        if row.call.function in ("add", "multiply"):
            keys = {
                "function": row.call.function,
                "inputs": 2,
                "dtype": row.call.dtype,
                "count": row.call.count,
                "into": row.call.into,
            }
        elif row.call.product is not None:
            kind = "matmul"
            product = row.call.product
            keys = {"m": product.m, "n": product.n, "k": product.k, "dtype": row.call.dtype, "into": row.call.into}
        if keys:
            said = hwsim.simulate(machine, {"hwsim": "workload/1", "name": "one call", "program": [{kind: keys}]})
            assert said.makespan_s == pytest.approx(row.quiet, rel=0.01)


def test_the_machine_file_says_where_every_number_is_from() -> None:
    text = whole().yaml()
    assert "ci95:" in text
    assert "points:" in text
    assert "source: measured" in text
    assert "median error" in text


def test_an_op_that_nobody_measured_is_named_and_its_part_of_the_time_said() -> None:
    ops = [{"elementwise": {"function": name, "count": 1e6, "dtype": "fp64", "inputs": 2}} for name in ("add", "erf")]
    run = hwsim.simulate(whole().yaml(), {"hwsim": "workload/1", "name": "two", "program": ops})
    assert "uncalibrated (erf)" in " ".join(str(run).split())
    assert run.to_json()["calibrated"]["missing"] == ("erf",)


def test_a_size_far_from_any_measured_is_said_to_be() -> None:
    ops = [{"elementwise": {"function": "exp", "count": 1e10, "dtype": "fp64", "inputs": 1}}]
    run = hwsim.simulate(whole().yaml(), {"hwsim": "workload/1", "name": "large", "program": ops})
    assert run.to_json()["calibrated"]["extrapolated"] > 0.99


def test_machines_without_measured_kernels_say_nothing_of_it() -> None:
    ops = [{"elementwise": {"function": "exp", "count": 1e6, "dtype": "fp32", "device": "cpu"}}]
    run = hwsim.simulate("laptop", {"hwsim": "workload/1", "name": "plain", "program": ops})
    assert "calibrated" not in run.to_json()


def test_corrections_shrink_where_nothing_was_measured_nearby() -> None:
    calls = [elementwise_call("add", dtype="fp64", count=2.0**power, inputs=2) for power in range(4, 20)]
    table = correct(calls, np.full(len(calls), 1.5))
    near, _ = table.of("add fp64 new", (3.0 * 2**10, 1.0))
    rows, _ = table.of("add fp64 new", (2.0**60, 2.0**20))
    far, _ = table.of("add fp64 new", (2.0**60, 1.0))
    beyond, measured = table.of("add fp64 new", (2.0**20, 1.0))
    assert 1.2 < near < 1.5
    assert far == pytest.approx(1.0, abs=1e-6)
    assert rows == pytest.approx(1.0, abs=1e-6)
    assert not measured
    assert beyond > 1.2  # twice the largest measured size: as there
    assert table.of("multiply fp64 new", (1024.0, 1.0)) == (1.0, False)


def test_a_measured_call_takes_what_was_measured() -> None:
    table = Corrections(points={"add fp64 new": ((1024.0, 1.0, 1.25), (4096.0, 1.0, 0.8))})
    kernels = replace(TRUTH, corrections=table)
    call = elementwise_call("add", dtype="fp64", count=1024, inputs=2)
    assert kernels.time(call).seconds == pytest.approx(1.25 * TRUTH.time(call).seconds)
    assert kernels.time(call).standing == "measured"


def test_what_was_used_just_now_comes_from_a_cache() -> None:
    cold = elementwise_call("add", dtype="fp64", count=1e5, inputs=2, into="out", since=(1e9, 1e9, 1e9))
    warm = elementwise_call("add", dtype="fp64", count=1e5, inputs=2, into="out", since=(1e4, 1e4, 1e4))
    assert TRUTH.time(cold).seconds > 1.5 * TRUTH.time(warm).seconds


@pytest.mark.parametrize(("op", "params"), [
    ("add", {"n": 4096, "dtype": "fp32", "into": "out", "other": "array"}),
    ("multiply", {"n": 4096, "dtype": "fp64", "into": "new", "other": "scalar"}),
    ("subtract", {"shape": (64, 32), "dtype": "fp64", "into": "new", "other": "column"}),
    ("add", {"shape": (64, 32), "dtype": "fp64", "into": "new", "other": "array", "layout": "strided"}),
    ("sum", {"shape": (64, 32), "dtype": "fp64", "axis": "1"}),
    ("max", {"shape": (64, 32), "dtype": "fp64", "axis": "1", "method": True}),
    ("matmul", {"shape": (64, 32, 16), "dtype": "fp32", "into": "out", "transposed": "a"}),
    ("matmul", {"shape": (64, 32, 1), "dtype": "fp32", "into": "new", "transposed": "none"}),
    ("take", {"n": 1000, "dtype": "fp32", "index": 77}),
    ("takerows", {"shape": (100, 8), "dtype": "fp32", "index": 77}),
    ("sort", {"shape": (8, 500), "dtype": "fp64"}),
    ("normal", {"n": 100, "dtype": "fp64"}),
    ("copyto", {"n": 64, "dtype": "fp32", "source": "fp64"}),
])  # fmt: skip
def test_the_row_that_measures_a_call_is_that_call(op: str, params: dict[str, object]) -> None:
    call = present(call_from(op, params))  # type: ignore[arg-type]
    again = present(measured_as(call))
    assert call_from(*again) == call


def test_products_with_a_vector_are_functions_of_their_own() -> None:
    assert product_call(64, 32, 1, dtype="fp64").function == "matvec"
    assert product_call(1, 32, 64, dtype="fp64").function == "vecmat"
    call = product_call(64, 32, 16, dtype="fp64", since=(1.0, 2.0, 3.0))
    assert call.function == "matmul"
    assert [(operand.bytes, operand.role, operand.since) for operand in call.operands] == [
        (16384, "read", 1.0), (4096, "read", 2.0), (8192, "write", 3.0),
    ]  # fmt: skip


@pytest.mark.parametrize("path", sorted(DATA.glob("*.json.gz")), ids=lambda path: path.stem)
def test_stored_measurements_are_told_at_sizes_held_out(path: Path) -> None:
    measured = load(path)
    if sum(call_of(row) is not None for row in measured.rows) < 100:
        pytest.skip("no calls of numpy in it")
    heldout = held_out(timed_calls(measured), capacities_of(measured))
    assert heldout.median < 0.08
    assert heldout.p90 < 0.35


@cache
def sparse() -> tuple[tuple[TimedCall, ...], tuple[TimedCall, ...], MeasuredFunctions]:
    """Stored calls; those of `add` and of products, as `--for` measures them; and the table that fits these alone."""
    measured = load(DATA / "epyc-zen3-vm-2core.json.gz")
    rows = timed_calls(measured)
    base = tuple(row for row in rows if row.call.product is not None or entry_of(row.call) == "add")
    return rows, base, fit_kernels(base, capacities_of(measured), bootstraps=0).kernels


@pytest.mark.parametrize(
    "entry", ["sum", "max", "exp", "sqrt", "log", "tanh", "sum columns", "max rows method", "multiply scalar", "greater scalar"]
)
def test_one_small_size_is_no_worse_for_large_ones_than_none(entry: str) -> None:
    """Next to functions that take alike, the stated default of what was not measured (see `hwsim.devices.typical_functions`)."""
    rows, base, alike = sparse()
    sizes = sorted(
        (row for row in rows if entry_of(row.call) == entry and row.call.dtype == "fp64"), key=lambda row: row.call.count
    )
    small = next(row for row in sizes if row.call.count > 1)
    fitted = with_rest(alike, [*split_core(base)[1], small])
    for row in sizes:
        function = present(estimate_function(alike, row.call))
        usual = replace(alike, functions={row.call.function: function}, corrections=Corrections()).time(row.call).seconds
        factor, without = (abs(np.log(seconds / row.quiet)) for seconds in (fitted.time(row.call).seconds, usual))
        if row.call.count >= small.call.count:
            assert factor < max(without, np.log(2)) + np.log(1.5), (
                f"{row.case}: x{np.exp(factor):.2f}, without it x{np.exp(without):.2f}"
            )


def test_where_nothing_was_measured_at_many_sizes_memory_still_tells() -> None:
    """Half of the sizes of `add` are four of seven: they are the ones that tell of caches."""
    rows, _, _ = sparse()
    adds = [row for row in rows if entry_of(row.call) == "add" and row.call.dtype == "fp64" and row.call.into == "out"]
    few = sorted({row.call.count: row for row in adds}.values(), key=lambda row: row.call.count)[::2][:4]
    core, rest = split_core(few)
    assert len(core) == len(few)
    assert rest == []
