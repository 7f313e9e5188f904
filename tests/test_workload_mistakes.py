"""Mistakes in workload files: all at once, each with its place and a hint."""

from __future__ import annotations

import pytest

from hwsim.api import prepare
from hwsim.engine import simulate
from hwsim.graph.opgraph import OpGraph
from hwsim.spec import SpecError, read_text

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
        ("program: []\nprograms: {}", "hwsim", "this one has program and programs", ""),
        ("name: nothing", "hwsim", "this one has none of them", ""),
        ("program: [{matmull: {m: 1}}]", "matmull", "no op or statement 'matmull'", "did you mean 'matmul'"),
        ("program: [{each: gpu*, do: []}]", "{each", "a statement is one key", "a program for each device is `program"),
        ("program: [wait]", "wait", "a statement is a mapping", ""),
        (f"program: [{{{OP}, wait: all}}]", "{busy", "not 'busy', 'wait' together", "begin each statement"),
        ("program: [{busy: {device: cpu, time: 1 s, quue: x}}]", "quue", "unknown key 'quue'", "did you mean 'queue'"),
        ("program: [{busy: {device: cpu, time: 30}}]", "30}", "'30' has no unit|30", ""),
        ("program: [{busy: {device: cpux, time: 1 s}}]", "{device", "cpux", "did you mean 'cpu'"),
        ("program: [{busy: {device: gpu, time: 1 s}}]", "{device", "gpu", ""),
        ("program: [{busy: {device: cpu, time: 1 s, queue: host}}]", "host", "the program's own thread", ""),
        ("program: [{copy: {from: cpu, to: gpu0, bytes: 1 B}}]", "{from", "no route", ""),
        (f"program: [{{{OP}}}, {{wait: b}}]", "b}", "no op or value called 'b'", "known: a, x"),
        (f"program: [{{wait: a}}, {{{OP}}}]", "a}", "nothing called 'a' comes before", ""),
        (f"program: [{{{OP}}}, {{wait: {{name: a, back: 1}}}}]", "a, back", "no repeat holds both", ""),
        (
            f"program: [{{{OP}}}, {{repeat: {{times: 2, do: [{{wait: {{name: a, back: 1}}}}]}}}}]",
            "a, back",
            "no repeat holds both",
            "",
        ),
        (f"program: [{{repeat: {{times: -1, do: [{{{OP}}}]}}}}]", "-1", "-1 cannot be negative", ""),
        (f"program: [{{repeat: {{times: 1.5, do: [{{{OP}}}]}}}}]", "1.5", "1.5 is not a whole number", ""),
        (f"program: [{{repeat: {{do: [{{{OP}}}]}}}}]", "{do", "'times' is missing", ""),
        ("program: {each: [], do: []}", "[], do", "names nothing", "such as each"),
        ("program: [{busy: {device: $self, time: 1 s}}]", "$self", "only under `each`", ""),
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
    assert [each.place.line for each in caught.value.mistakes if each.place] == [5, 7, 8, 9, 10]


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
    with pytest.raises(SpecError, match=f"program '{missing}' comes to the barrier 'sync'") as caught:
        load(text)
    assert [str(each.place) for each in caught.value.mistakes] == [f"w.yaml:{'5:42' if missing == 'q' else '4:17'}"]


def test_crossed_barriers_are_named_with_their_programs_and_a_line() -> None:
    with pytest.raises(SpecError) as caught:
        load("programs:\n  p: [{barrier: m}, {barrier: n}]\n  q: [{barrier: n}, {barrier: m}]")
    [mistake] = caught.value.mistakes
    assert "'q' comes to 'n' before 'm'" in mistake.message
    assert "'p' comes to 'm' before 'n'" in mistake.message
    assert mistake.place.line in (3, 4)


@pytest.mark.parametrize("times", [1, 1000])
def test_three_programs_whose_barriers_make_a_circle_are_all_named(times: int) -> None:
    loops = [f"{who}: [{{repeat: {{times: {times}, do: [{{barrier: {one}}}, {{barrier: {two}}}]}}}}]"
             for who, one, two in (("p", "x", "y"), ("q", "y", "z"), ("r", "z", "x"))]  # fmt: skip
    with pytest.raises(SpecError, match="crossed barriers") as caught:
        load("programs:\n  " + "\n  ".join(loops))
    assert all(f"'{each}'" in str(caught.value) for each in ("p", "q", "r", "x", "y", "z"))


def test_barriers_in_one_order_finish_whatever_stands_between_them() -> None:
    busy = "{busy: {device: cpu, time: 1 s}}"
    first, second = f"{{barrier: m}}, {busy}, {{barrier: n}}, {{barrier: m}}", "{barrier: m}, {barrier: n}, {barrier: m}"
    assert simulate(load(f"programs:\n  p: [{first}]\n  q: [{second}]")).makespan_fs == 10**15
