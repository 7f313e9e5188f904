"""Calls beyond the elementwise: each snippet is one call of the model; what was not measured has a stand-in, and is said."""

from __future__ import annotations

import math
import warnings
from contextlib import ExitStack

import numpy as np
import pytest

import hwsim
from hwsim.devices.kernels import Corrections, Function, MeasuredFunctions
from hwsim.devices.typical_functions import estimate_function, typical_kernels, typical_time
from hwsim.devices.work import LibraryCall, elementwise_call
from hwsim_calibrate.calls import call_from
from hwsim_calibrate.case import CannotMeasure
from hwsim_calibrate.kernels import kernel_case
from hwsim_calibrate.recording.ops import op_of
from hwsim_calibrate.recording.output import new_pages
from hwsim_calibrate.recording.tape import Described, Step
from hwsim_calibrate.snippet_calls import call_of_params, recorded_call, snippet_case, snippet_of
from hwsim_calibrate.snippet_inputs import Inputs
from hwsim_calibrate.snippets import SNIPPETS
from hwsim_calibrate.suites.kernels import MATRIX
from tests.each import each
from tests.present import present

ODD = {
    "eye",
    "full",
    "across",
    "gradient 2",
    "dot",
    "tensordot",
    "fft2",
    "rfft2",
    "ifft2",
    "crossed",
    "power",
    "det",
    "diag",
}  # of another name, or size


@each("name", sorted(SNIPPETS))
def test_a_snippet_is_one_call_that_leads_back_to_it(name: str) -> None:
    call = call_of_params(snippet_case(name, Inputs(32)).params)
    assert call.count > 0
    assert op_of(call)[0] in ("access", "compute", "elementwise", "matmul", "random", "reduce")
    again = snippet_of(call)
    if again is not None and name not in ODD:
        assert call_of_params(snippet_case(*again).params).function == call.function


def test_the_words_of_a_case_are_what_a_recorder_finds() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ops, formats, more in MATRIX:
            for op in ops.split():
                params = {"n": 64, "dtype": formats[-1], "into": "new", **more}
                said, heard = present(call_from(op, params)), recorded_call(lambda: kernel_case(op, params).make(ExitStack()))  # noqa: B023
                assert (said.function, said.form, said.dtype, said.operands) == (
                    heard.function, heard.form, heard.dtype, tuple(_ageless(heard)),
                )  # fmt: skip


def _ageless(call: LibraryCall) -> list[object]:
    from dataclasses import replace

    return [replace(operand, since=None) for operand in call.operands]


def test_several_calls_are_no_case() -> None:
    with pytest.raises(CannotMeasure, match="not a single numpy call"):
        recorded_call(lambda: lambda: np.ones(3) + np.ones(3))
    with pytest.raises(CannotMeasure, match="there is no kernel 'erf'"):
        snippet_case("erf", Inputs(4))


def test_a_function_nobody_measured_takes_what_alike_ones_take() -> None:
    usual_tan, usual_exp = typical_time("tan", "", "fp64"), typical_time("exp", "", "fp64")
    assert usual_tan
    assert usual_exp
    slow = MeasuredFunctions(functions={"exp": Function(call=1e-6, each={"fp64": 3.0 * usual_exp[1]})})
    told = present(estimate_function(slow, elementwise_call("tan", dtype="fp64", count=1e4)))
    assert told.each["fp64"] == pytest.approx(3.0 * usual_tan[1])
    assert estimate_function(slow, elementwise_call("nobody_knows_it", dtype="fp64", count=1e4)) is None
    assert estimate_function(MeasuredFunctions(), elementwise_call("tan", dtype="fp64", count=1e4)) is None


def test_a_function_measured_in_one_format_takes_the_usual_ratio_in_another() -> None:
    """Seconds of an element, not of a call: exp in fp32 takes as much less as it usually does."""
    wide, narrow = typical_time("exp", "", "fp64"), typical_time("exp", "", "fp32")
    assert wide
    assert narrow
    assert narrow[1] / wide[1] != pytest.approx(0.5, abs=0.01)  # the ratio of their widths
    measured = MeasuredFunctions(functions={"exp": Function(call=1e-6, each={"fp64": 5.0 * wide[1]})})
    told = present(estimate_function(measured, elementwise_call("exp", dtype="fp32", count=1e4)))
    assert told.each["fp32"] == pytest.approx(5.0 * narrow[1])
    assert told.call == 1e-6


MEASURED = """
hwsim: machine/1
name: measured
parts:
  cpu:
    kind: cpu
    cores: 1
    flop: {fp64: 10 GFLOP/s}
    memory: {bandwidth: 10 GB/s}
    kernels:
      functions: {exp: {call: 1 us, each: {fp64: 1 ns}}, add: {call: 1 us, each: {fp64: 0.1 ns}}}
"""
BARE = """
hwsim: machine/1
name: bare
parts: {cpu: {kind: cpu, cores: 1, flop: {fp64: 10 GFLOP/s}, memory: {bandwidth: 10 GB/s}}}
"""


def _ran(machine: str, function: str, **keys: object) -> hwsim.Result:
    op = {"device": "cpu", "function": function, "count": 1e5, "dtype": "fp64", "cores": 1, **keys}
    return hwsim.simulate(machine, {"hwsim": "workload/1", "name": "one", "program": [{"elementwise": op}]})


def test_what_stands_in_is_named_with_its_part_of_the_time() -> None:
    run = _ran(MEASURED, "tan")
    assert "100 % from similar functions (for tan)" in " ".join(str(run).split())
    assert any(warning.code == "not-calibrated" for warning in run.warnings)
    doubts = [doubt for cost in run.timeline.flat.graph.costs for term in cost.why for doubt in term.doubts]
    assert {doubt.regime for doubt in doubts} == {"program/related"}


def test_sorting_is_not_as_fast_as_its_formula() -> None:
    sorted_, added = _ran(BARE, "argsort").makespan_s, _ran(BARE, "add").makespan_s
    assert sorted_ > 10 * added
    doubts = [
        doubt.regime for cost in _ran(BARE, "argsort").timeline.flat.graph.costs for term in cost.why for doubt in term.doubts
    ]
    assert "program/usual" in doubts


def test_whole_numbers_need_no_peak_of_their_own() -> None:
    assert _ran(BARE, "floor_divide", dtype="int8").makespan_s > 0


def test_usual_times_go_with_the_clock() -> None:
    call = elementwise_call("sin", dtype="fp64", count=1e5)
    assert typical_kernels(1.85e9).time(call).compute == pytest.approx(2 * typical_kernels(3.7e9).time(call).compute)


def test_between_two_measured_sizes_of_a_few_is_interpolated() -> None:
    points = {"f fp64 new": ((100.0, 1.0, 2.0), (10000.0, 1.0, 0.5))}
    found = Corrections(points=points, few=6)
    low, middle, high = (found.of("f fp64 new", (count, 1.0))[0] for count in (110.0, 1000.0, 9000.0))
    assert low > 1.5
    assert middle == pytest.approx(1.0)
    assert high < 0.6
    assert found.of("f fp64 new", (100.0, 1.0)) == (2.0, True)


def test_beyond_the_largest_measured_size_its_ratio_goes_on() -> None:
    points = {"f fp64 new": tuple((10.0**index, 1.0, 1.5 if index > 5 else 1.0) for index in range(1, 9))}
    found = Corrections(points=points, few=6, width=0.35)
    assert found.of("f fp64 new", (1e12, 1.0)) == (1.5, False)
    assert found.of("f fp64 new", (1e-3, 1.0))[0] == 1.0


def test_a_function_stands_in_for_itself_in_another_format() -> None:
    kernels = MeasuredFunctions(functions={"lexsort": Function(call=2e-6, each={"int64": 8e-9}, row=1e-9)})
    told = present(estimate_function(kernels, elementwise_call("lexsort", dtype="fp64", count=1e4)))
    assert (told.call, told.each, told.row) == (2e-6, {"fp64": 8e-9}, 1e-9)


def test_a_distribution_nobody_timed_takes_what_others_take() -> None:
    draws = {
        f"{name} generator": Function(call=1e-6, each={"fp64": cost}) for name, cost in (("a", 1e-9), ("b", 3e-9), ("c", 9e-9))
    }
    told = present(
        estimate_function(
            MeasuredFunctions(functions=draws), elementwise_call("zipf", form="generator", dtype="int64", count=1e4)
        )
    )
    assert told.each == {"int64": 3e-9}


def test_a_lookup_into_new_pages_pays_for_them() -> None:
    machine = MEASURED.replace("functions: {", "fault: 2 us\n      functions: {index: {call: 1 us, each: {fp64: 1 ns}}, ")
    op = {"device": "cpu", "function": "index", "pattern": "random", "count": 1e5, "working_set": "8 MB", "cores": 1}
    none, many = (
        hwsim.simulate(machine, {"hwsim": "workload/1", "name": "one", "program": [{"access": {**op, "new_pages": pages}}]})
        for pages in (0, 200)
    )
    assert many.makespan_s - none.makespan_s == pytest.approx(199 * 2e-6, rel=0.01)


def test_new_pages_of_a_loop_are_the_mean_of_its_turns() -> None:
    keys = {"shape": [131072], "dtype": "fp64"}
    steps = [Step("add", "1", Described("elementwise", keys), faults=faults) for faults in (256.0, 0.0, 0.0, 0.0)]
    assert new_pages(steps) == (64.0, 0.25)


def test_part_of_the_pages_takes_part_of_the_time() -> None:
    machine = MEASURED.replace("functions:", "pages: 10 GB/s\n      functions:")
    whole, part, none = (
        _ran(machine, "add", inputs=2, **more).makespan_s
        for more in ({"new_pages": 100}, {"new_pages": 25, "new_bytes": "200 kB"}, {"new_pages": 0})
    )
    assert part - none == pytest.approx((whole - none) / 4, rel=1e-6)


def test_every_function_that_a_recorder_writes_is_known() -> None:
    from hwsim.devices.functions import FUNCTIONS
    from hwsim_calibrate.calls import DRAWN, GENERAL, REDUCTIONS, TWO
    from hwsim_calibrate.kernels import ONE
    from hwsim_calibrate.recording.ops import LOOKUPS

    assert {*GENERAL, *REDUCTIONS, *TWO, *DRAWN, *ONE, *LOOKUPS, "bincount", "where", "sort", "argsort"} <= FUNCTIONS


def test_measured_calls_are_weighted_by_how_near_they_are() -> None:
    """Half way between two calls, one factor of two from each, with a width of two: exp(-1/8) each, drawn towards 1 by 0.5."""
    found = Corrections(width=2.0, shrink=0.5, points={"f fp64 new": ((4.0, 1.0, 2.0), (16.0, 1.0, 4.0))})
    each = math.exp(-1 / 8)
    assert found.of("f fp64 new", (8.0, 1.0))[0] == pytest.approx(8 ** (each / (2 * each + 0.5)))
