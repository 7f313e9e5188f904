"""Mistakes in workload files, all at once with place and hint; what `hwsim check` says without a machine, what a run warns of."""

from __future__ import annotations

from pathlib import Path

import pytest

import hwsim
from hwsim.api import prepare
from hwsim.engine import simulate
from hwsim.graph.opgraph import OpGraph
from hwsim.spec import Mistakes, SpecError, find, read, read_text
from hwsim.workload import check_statements, read_workload, suspicions
from tests.test_engine_plain import LARGE

MACHINE = """
hwsim: machine/1
class: ideal
parts:
  cpu: {kind: cpu, cores: 4, flop: {fp32: 400 GFLOP/s}, memory: {size: 16 GB, bandwidth: 40 GB/s}}
  gpu: {kind: gpu, count: 2, flop: {fp32: 10 TFLOP/s}, memory: {size: 16 GB, bandwidth: 1 TB/s}}
"""


def load(text: str) -> OpGraph:
    return prepare(MACHINE, read_text(f"hwsim: workload/1\n{text}", "w.yaml")).graph


OP = "busy: {name: a, device: cpu, time: 1 s, updates: x}"


@pytest.mark.parametrize(
    ("text", "caret", "message", "hint"),
    [
        ("program: []\nprograms: {}", "hwsim", "got program and programs", ""),
        ("name: nothing", "hwsim", "got none of them", ""),
        ("program: [{matmull: {m: 1}}]", "matmull", "no op or statement 'matmull'", "did you mean 'matmul'"),
        ("program: [{each: gpu*, do: []}]", "{each", "a mapping with one key", "a program for each device is `program"),
        ("program: [wait]", "wait", "expected a statement such as `wait: all`, got", ""),
        (f"program: [{{{OP}, wait: all}}]", "{busy", "with one key, got 'busy', 'wait'", "begin each statement"),
        ("program: [{busy: {device: cpu, time: 1 s, quue: x}}]", "quue", "unknown key 'quue'", "did you mean 'queue'"),
        ("program: [{busy: {device: cpu, time: 30}}]", "30}", "'30' has no unit|30", ""),
        ("program: [{busy: {device: cpux, time: 1 s}}]", "{device", "cpux", "did you mean 'cpu'"),
        ("program: [{busy: {device: gpu, time: 1 s}}]", "{device", "gpu", ""),
        ("program: [{busy: {device: cpu, time: 1 s, queue: host}}]", "host", "reserved for the program's thread", ""),
        ("program: [{copy: {from: cpu, to: gpu0, bytes: 1 B}}]", "{from", "no route", ""),
        (f"program: [{{{OP}}}, {{wait: b}}]", "b}", "no op or value called 'b'", "known: a, x"),
        (f"program: [{{wait: a}}, {{{OP}}}]", "a}", "'a' is defined only after", ""),
        (f"program: [{{{OP}}}, {{wait: {{name: a, back: 1}}}}]", "a, back", "no repeat contains both", ""),
        (
            f"program: [{{{OP}}}, {{repeat: {{times: 2, do: [{{wait: {{name: a, back: 1}}}}]}}}}]",
            "a, back",
            "no repeat contains both",
            "",
        ),
        (f"program: [{{repeat: {{times: -1, do: [{{{OP}}}]}}}}]", "-1", "-1 cannot be negative", ""),
        (f"program: [{{repeat: {{times: 1.5, do: [{{{OP}}}]}}}}]", "1.5", "1.5 is not a whole number", ""),
        (f"program: [{{repeat: {{do: [{{{OP}}}]}}}}]", "{do", "'times' is missing", ""),
        ("program: {each: [], do: []}", "[], do", "names no device", "each: gpu"),
        ("program: [{busy: {device: $self, time: 1 s}}]", "$self", "only in a program with `each`", ""),
        ("runtime: {queue_depth: 0}\nprogram: []", "0}", "0", ""),
    ],
)
def test_a_mistake_has_a_place_and_a_hint(text: str, caret: str, message: str, hint: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        load(text)
    [mistake] = caught.value.mistakes
    place = mistake.place
    assert f"hwsim: workload/1\n{text}".splitlines()[place.line - 1][place.column - 1 :].startswith(caret)
    assert (mistake.hint or "").startswith(hint)


def test_all_mistakes_of_a_file_come_at_once() -> None:
    text = """
program:
  - repeat:
      times: -1
      do:
        - busy: {device: cpx, time: 1 s}
        - wait: nothing
  - matmul: {device: cpu, m: 1, n: 1}
  - wiat: all
"""
    with pytest.raises(SpecError) as caught:
        load(text)
    assert [mistake.place.line for mistake in caught.value.mistakes if mistake.place] == [5, 7, 8, 9, 10]


def test_a_wrong_op_is_still_known_by_name() -> None:
    with pytest.raises(SpecError) as caught:
        load("program: [{busy: {name: a, device: nowhere, time: 1 s}}, {wait: a}]")
    assert len(caught.value.mistakes) == 1


@pytest.mark.parametrize(("times", "missing"), [(1, "q"), (3, "p")])
def test_a_program_that_never_arrives_is_named(times: int, missing: str) -> None:
    text = f"""
programs:
  p: [{{barrier: sync}}, {{barrier: sync}}]
  q: [{{repeat: {{times: {times}, do: [{{barrier: sync}}]}}}}]
"""
    with pytest.raises(SpecError, match=f"program '{missing}' reaches barrier 'sync'") as caught:
        load(text)
    assert [str(mistake.place) for mistake in caught.value.mistakes] == [f"w.yaml:{'5:42' if missing == 'q' else '4:17'}"]


def test_crossed_barriers_are_named_with_their_programs_and_a_line() -> None:
    with pytest.raises(SpecError) as caught:
        load("programs:\n  p: [{barrier: m}, {barrier: n}]\n  q: [{barrier: n}, {barrier: m}]")
    [mistake] = caught.value.mistakes
    assert "'q' reaches 'n' before 'm'" in mistake.message
    assert "'p' reaches 'm' before 'n'" in mistake.message
    assert mistake.place.line in (3, 4)


@pytest.mark.parametrize("times", [1, 1000])
def test_three_programs_whose_barriers_make_a_circle_are_all_named(times: int) -> None:
    loops = [f"{who}: [{{repeat: {{times: {times}, do: [{{barrier: {one}}}, {{barrier: {two}}}]}}}}]"
             for who, one, two in (("p", "x", "y"), ("q", "y", "z"), ("r", "z", "x"))]  # fmt: skip
    with pytest.raises(SpecError, match="crossed barriers") as caught:
        load("programs:\n  " + "\n  ".join(loops))
    assert all(f"'{label}'" in str(caught.value) for label in ("p", "q", "r", "x", "y", "z"))


def test_barriers_in_one_order_finish_whatever_stands_between_them() -> None:
    busy = "{busy: {device: cpu, time: 1 s}}"
    first, second = f"{{barrier: m}}, {busy}, {{barrier: n}}, {{barrier: m}}", "{barrier: m}, {barrier: n}, {barrier: m}"
    assert simulate(load(f"programs:\n  p: [{first}]\n  q: [{second}]")).makespan_fs == 10**15


ROOT = Path(__file__).resolve().parent.parent


def said(text: str) -> list[str]:
    mistakes = Mistakes()
    workload = read_workload(read("hwsim: workload/1\n" + text), mistakes)
    assert workload is not None
    check_statements(workload, mistakes)
    try:
        mistakes.raise_if_any()
    except SpecError as error:
        return [mistake.message for mistake in error.mistakes]
    return []


def warned(text: str) -> tuple[str, ...]:
    workload = read_workload(read("hwsim: workload/1\n" + text), Mistakes())
    assert workload is not None
    return tuple(suspicion.text for suspicion in suspicions(workload))


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


PROGRAMS = [name for name in LARGE if {"program", "programs"} & set(dict(read(find("workload", name)).items()))]


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_large_workload_of_the_library_keeps_its_promise(name: str) -> None:
    """The others: `test_engine_plain.py`."""
    promised = read(find("workload", name)).get("expect")
    assert [verdict.status for verdict in hwsim.simulate(str(promised.text("machine")), name).verdicts] == ["met"]


def test_a_value_under_nearly_another_s_name_is_suspicious() -> None:
    (warning,) = warned("program:\n  - busy: {time: 1 s, writes: batch}\n  - busy: {time: 1 s, reads: bathc}")
    assert "no op writes the value 'bathc' that is read here; did you mean 'batch'?" in warning


def test_a_value_from_outside_is_not() -> None:
    assert warned("program: [{busy: {time: 1 s, reads: weights, writes: y}}]") == ()


def test_a_barrier_where_nobody_else_comes_is_suspicious() -> None:
    assert warned("programs: {a: [{barrier: step}], b: [{barrier: stpe}]}") == (
        "only program 'a' names barrier 'step', so the barrier has no effect",
        "only program 'b' names barrier 'stpe', so the barrier has no effect",
    )


def test_more_ops_than_fit_are_refused_before_they_fill_the_memory() -> None:
    with pytest.raises(SpecError, match="they would take about"):
        hwsim.simulate("d2l-laptop", "d2l/async-loop", set={"n": 10**9})
