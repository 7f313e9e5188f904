"""What `hwsim check` says of statements without a machine, and what a run warns of."""

from __future__ import annotations

from pathlib import Path

import pytest

import hwsim
from hwsim.spec import Mistakes, SpecError, read
from hwsim.workload import check_statements, read_workload, suspicions

ROOT = Path(__file__).resolve().parent.parent


def said(text: str) -> list[str]:
    mistakes = Mistakes()
    workload = read_workload(read("hwsim: workload/1\n" + text), mistakes)
    assert workload is not None
    check_statements(workload, mistakes)
    try:
        mistakes.raise_if_any()
    except SpecError as error:
        return [each.message for each in error.mistakes]
    return []


def warned(text: str) -> tuple[str, ...]:
    workload = read_workload(read("hwsim: workload/1\n" + text), Mistakes())
    assert workload is not None
    return suspicions(workload)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("program: [{mathmul: {m: 2}}]", "there is no op or statement 'mathmul'"),
        ("program: [{repeat: {times: 2, do: [{busy: {time: 3 MB}}]}}]", "'3 MB' is a size, but a time is needed here"),
        ("program: [{busy: {time: 1 s}}, {wait: nothing}]", "nothing is called 'nothing'"),
        ("program: [{busy: {time: 1 s, after: ghost}}]", "nothing is called 'ghost'"),
        ("pipeline: {batches: 2, stages: [{bsy: {}}]}", "there is no op or statement 'bsy'"),
        ("program: {each: gpu*, do: [{send: {to: gpu0, bytes: 1 s}}]}", "'1 s' is a time, but a size is needed here"),
    ],
)
def test_a_mistake_is_found_without_a_machine(text: str, message: str) -> None:
    assert message in said(text)


@pytest.mark.parametrize("path", sorted((ROOT / "workloads" / "d2l").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_library_has_no_mistakes_and_gives_no_cause_for_suspicion(path: Path) -> None:
    mistakes = Mistakes()
    workload = read_workload(read(path), mistakes)
    assert workload is not None
    check_statements(workload, mistakes)
    mistakes.raise_if_any()
    assert suspicions(workload) == ()


def test_a_value_under_nearly_another_s_name_is_suspicious() -> None:
    (warning,) = warned("program:\n  - busy: {time: 1 s, writes: batch}\n  - busy: {time: 1 s, reads: bathc}")
    assert "nothing makes 'bathc', which is read; did you mean 'batch'?" in warning


def test_a_value_from_outside_is_not() -> None:
    assert warned("program: [{busy: {time: 1 s, reads: weights, writes: y}}]") == ()


def test_a_barrier_where_nobody_else_comes_is_suspicious() -> None:
    assert warned("programs: {a: [{barrier: step}], b: [{barrier: stpe}]}") == (
        "only program 'a' names the barrier 'step'",
        "only program 'b' names the barrier 'stpe'",
    )


def test_more_ops_than_fit_are_refused_before_they_fill_the_memory() -> None:
    with pytest.raises(SpecError, match="ops would take about"):
        hwsim.simulate("d2l-laptop", "d2l/async-loop", set={"n": 10**9})
