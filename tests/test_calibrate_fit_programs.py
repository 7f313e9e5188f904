"""Programs recorded call by call: what is seen of them, how they become workloads, and how they are scored."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hwsim
from hwsim.spec import tree_of
from hwsim_calibrate import text
from hwsim_calibrate.composites import BLIND, DEVELOPMENT, PROGRAMS
from hwsim_calibrate.fit import fit
from hwsim_calibrate.recording.numpy_patches import calls_of
from hwsim_calibrate.recording.operands import Array, layout
from hwsim_calibrate.recording.ops import op_of, workload_of
from hwsim_calibrate.validate import validate
from hwsim_calibrate.workload_cases import call_of_op
from published.composites import page
from tests.calibrate_cases import made_up

Step = Callable[[], object]


def calls(step: object, *arrays: Array) -> list[tuple[str, str, str]]:
    def make() -> Step:
        copies = [np.array(array) for array in arrays]
        return lambda: step(*copies)  # type: ignore[operator]

    return [(call.function, call.form, call.into) for call in calls_of(make)]


A, V = np.ones((30, 40)), np.ones(40)


@pytest.mark.parametrize(("step", "told"), [
    (lambda a, v: a + a, ("add", "same", "new")),
    (lambda a, v: a + v, ("add", "row", "new")),
    (lambda a, v: a * 2.0, ("multiply", "scalar", "new")),
    (lambda a, v: np.add(a, a[::-1], out=a), ("slice", "", "out")),
    (lambda a, v: np.sqrt(v, out=v), ("sqrt", "", "self")),
    (lambda a, v: np.sum(a), ("sum", "", "new")),
    (lambda a, v: a.max(axis=1), ("max", "rows method", "new")),
    (lambda a, v: a.sum(axis=0), ("sum", "columns method", "new")),
    (lambda a, v: a @ v, ("matvec", "", "new")),
    (lambda a, v: a.T @ a, ("transpose", "", "out")),
    (lambda a, v: v.astype(np.float32), ("astype", "from fp64", "new")),
    (lambda a, v: v[np.array([3, 1])], ("index", "", "new")),
    (lambda a, v: np.random.normal(size=7), ("normal", "", "new")),  # noqa: NPY002 (as programs call it)
    (lambda a, v: np.sort(v), ("sort", "sorted", "new")),
])  # fmt: skip
def test_a_call_is_seen_for_what_it_is(step: object, told: tuple[str, str, str]) -> None:
    assert calls(step, A, V)[0] == told


def test_a_product_of_a_matrix_with_itself_is_told_apart() -> None:
    assert calls(lambda a: a.T @ a, A)[-1] == ("matmul", "gram", "new")
    assert calls(lambda a: a @ a.T.copy(), A)[-1][:2] == ("matmul", "")


def test_a_slice_changed_in_place_is_not_copied_onto_itself() -> None:
    """numpy sees that both are the same memory; heat, one of 47 programs, is the one that two recorders saw differently."""

    def step(a: Array) -> None:
        a[1:-1] += a[2:]

    assert [function for function, *_ in calls(step, A)] == ["slice", "slice", "add"]


def test_how_operands_lie() -> None:
    assert layout([A, A], np.empty_like(A)) == ("", 1.0)
    assert layout([A[:, 1:-1]], np.empty((30, 38))) == ("strided", 30.0)
    assert layout([A, A[:, :1]], np.empty_like(A)) == ("column", 30.0)
    assert layout([A.T], np.empty((40, 30))) == ("across", 40.0)


def test_what_was_used_last_is_near_and_what_was_not_is_far() -> None:
    def make() -> Step:
        one, two = np.ones(100_000), np.ones(100)

        def step() -> None:
            np.add(two, 1.0, out=two)
            np.add(two, 1.0, out=two)
            np.add(one, 1.0, out=one)

        return step

    first, second, _ = calls_of(make)
    assert first.operands[0].since is not None
    assert first.operands[0].since >= 800_000
    assert second.operands[0].since == 800


SMALL = [*DEVELOPMENT[:3], *(program for program in BLIND if "small" in program.name)]


@pytest.mark.parametrize("program", SMALL, ids=lambda each: each.name)
def test_every_call_of_a_program_becomes_an_op_that_is_that_call(program: object) -> None:
    for call in calls_of(program.make):  # type: ignore[attr-defined]
        kind, keys = op_of(call)
        if kind == "access" or call.count <= 0:
            continue
        again = call_of_op(kind, tree_of(keys))
        assert again is not None
        assert (again.function, again.form, again.dtype, again.into) == (call.function, call.form, call.dtype, call.into)
        assert again.count == call.count
        assert [operand.role for operand in again.operands] == [argument.role for argument in call.operands]


def test_there_are_programs_enough_and_no_name_twice() -> None:
    assert len(BLIND) >= 30
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)
    assert not {program.name for program in BLIND} & {program.name for program in DEVELOPMENT}


def test_a_recorded_program_simulates_on_any_machine() -> None:
    document = workload_of("layer", calls_of(DEVELOPMENT[2].make))
    run = hwsim.simulate("laptop", document)
    assert run.makespan_s > 0


def test_a_program_is_scored_against_what_it_took() -> None:
    fitted = fit(made_up(), name="made up")
    report = validate(fitted, programs=DEVELOPMENT[:3], timed={DEVELOPMENT[0].name: 1e-4, DEVELOPMENT[2].name: 3e-5})
    assert "largest errors" in text.format_report(report)
    assert "| program |" in page(report)
    assert all(program.calls > 5 for program in report.programs)
