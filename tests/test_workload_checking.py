"""What `hwsim check` says of statements without a machine, and what a run warns of."""

from __future__ import annotations

from pathlib import Path

import pytest

import hwsim
from hwsim.api import prepare
from hwsim.spec import Mistakes, SpecError, find, names, read
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
    return tuple(each.text for each in suspicions(workload))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("program: [{mathmul: {m: 2}}]", "there is no op or statement 'mathmul'"),
        ("program: [{repeat: {times: 2, do: [{busy: {time: 3 MB}}]}}]", "'3 MB' is a size, but a time is needed here"),
        ("program: [{busy: {time: 1 s}}, {wait: nothing}]", "there is no op or value called 'nothing'"),
        ("program: [{busy: {time: 1 s, after: ghost}}]", "there is no op called 'ghost'"),
        ("pipeline: {batches: 2, stages: [{bsy: {}}]}", "there is no op 'bsy'"),
        ("program: {each: gpu*, do: [{send: {to: gpu0, bytes: 1 s}}]}", "'1 s' is a time, but a size is needed here"),
    ],
)
def test_a_mistake_is_found_without_a_machine(text: str, message: str) -> None:
    assert message in said(text)


@pytest.mark.parametrize(
    ("text", "said_by_both"),
    [
        ("program: [{busy: {device: gpu0, time: 1 s}}, {wait: nothing}]", "there is no op or value called 'nothing'"),
        ("program: [{busy: {device: gpu0, time: 1 s, after: ghost}}]", "there is no op called 'ghost'"),
        ("program: [{bsy: {device: gpu0, time: 1 s}}]", "there is no op or statement 'bsy'"),
        ("pipeline: {batches: 2, stages: [{bsy: {}}]}", "there is no op 'bsy'"),
    ],
)
def test_an_unknown_name_is_told_in_the_same_words_with_a_machine_and_without(text: str, said_by_both: str) -> None:
    assert said_by_both in said(text)
    with pytest.raises(SpecError) as error:
        prepare("d2l-4gpu-pcie", f"hwsim: workload/1\n{text}\n")
    assert said_by_both in str(error.value)


@pytest.mark.parametrize(("dtype", "meant"), [("float16", "fp16"), ("float32", "fp32"), ("int", "int8"), ("bfloat16", "bf16")])
def test_what_other_tools_call_a_type_is_understood_enough_for_a_hint(dtype: str, meant: str) -> None:
    with pytest.raises(SpecError, match=f"did you mean '{meant}'") as error:
        prepare(
            "d2l-4gpu-pcie",
            {"hwsim": "workload/1", "program": [{"matmul": {"device": "gpu0", "m": 1, "n": 1, "k": 1, "dtype": dtype}}]},
        )
    assert "int4" not in (error.value.mistakes[0].hint or "")


@pytest.mark.parametrize("path", sorted((ROOT / "workloads" / "d2l").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_library_has_no_mistakes_and_gives_no_cause_for_suspicion(path: Path) -> None:
    mistakes = Mistakes()
    workload = read_workload(read(path), mistakes)
    assert workload is not None
    check_statements(workload, mistakes)
    mistakes.raise_if_any()
    assert suspicions(workload) == ()


PROGRAMS = [name for name in names("workload") if {"program", "programs"} & set(dict(read(find("workload", name)).items()))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_workload_of_the_library_keeps_its_promise(name: str) -> None:
    promised = read(find("workload", name)).get("expect")
    assert [each.status for each in hwsim.simulate(str(promised.text("machine")), name).verdicts] == ["met"]


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
