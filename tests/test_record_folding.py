"""Loops of recorded programs: found, named, and written another way where names would lie, in time linear in the calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hwsim
from hwsim_calibrate.recording.loops import MAX_CHECKS, Folded, fold
from hwsim_calibrate.recording.nodes import Leaf, Node
from hwsim_calibrate.recording.output import document
from hwsim_calibrate.recording.script import Recording, record_script
from hwsim_calibrate.recording.tape import Described, RecordedArray, Step

BLOCK = """
import numpy as np

def block(x, w):
    q, k, v = x @ w, x @ w, x @ w
    s = q @ k.T
    s = s * 0.125
    s = s - s.max(axis=1, keepdims=True)
    e = np.exp(s)
    a = (e / e.sum(axis=1, keepdims=True)) @ v
    y = x + a
    y = y - y.mean(axis=1, keepdims=True)
    y = y / np.sqrt((y * y).mean(axis=1, keepdims=True) + 1e-5)
    h = np.tanh(y @ w)
    return y + h @ w

x = np.ones((8, 8))
"""
SHARED = BLOCK + "w = np.eye(8)\nfor _ in range({turns}):\n    x = block(x, w)\n"
OWN = BLOCK + "for w in [np.full((8, 8), 0.1 * turn) for turn in range({turns})]:\n    x = block(x, w)\n"


def recorded(folder: Path, text: str) -> Recording:
    path = folder / "block.py"
    path.write_text(text, encoding="utf-8")
    return record_script(path)


def played(nodes: Sequence[Node], turns: tuple[tuple[int, int], ...] = ()) -> Iterator[tuple[Leaf, int]]:
    """Each statement as often as it is executed, in order, and the call that it is then."""
    for node in nodes:
        if isinstance(node, Leaf):
            place = 0
            for turn, times in turns:
                place = place * times + turn
            yield node, node.calls[place]
        else:
            for turn in range(node.times):
                yield from played(node.body, (*turns, (turn, node.times)))


def holds(folded: Folded, steps: Sequence[Step]) -> None:
    """Executed as it is written, every call comes in its turn and reads by name the arrays that it read."""
    order = list(played(folded.nodes))
    assert [call for _, call in order] == list(range(len(steps)))
    meant: dict[str, int] = {}
    named: dict[tuple[Leaf, int], str] = {}
    for leaf, call in order:
        step = steps[call]
        for place, value in enumerate((*step.reads, *step.updates)):
            if value is not None:
                assert meant[folded.names[value]] == value
                assert named.setdefault((leaf, place), folded.names[value]) == folded.names[value]
        for array in step.made:
            meant[folded.names[array.value]] = array.value


# ---- programs made up: any loops, any array handed on from anywhere ----


@st.composite
def programs(draw: st.DrawFn) -> list[Step]:
    """Statements in loops in loops; an operand is the latest array but so many, or one that was made so long ago."""
    steps: list[Step] = []
    lines = iter(range(1, 1000))
    count = 0

    def statement(line: int, back: Any, makes: Any, same_line: Any) -> None:
        nonlocal count
        reads = tuple(array if 1 <= array <= count else None for array in ((count - n) if late else n + 1 for late, n in back))
        made = tuple(RecordedArray(count + 1 + index, (4,), "fp32", 16) for index in range(makes))
        op = Described("busy", {}, reason="made up")
        count += makes
        steps.append(Step("f", str(line), op, reads, (), made, 1e-6 * (1 + len(steps)), 1e-6 * (2 + len(steps))))
        if same_line:
            statement(line, back, makes, same_line - 1)

    def body(depth: int) -> list[object]:
        size = draw(st.integers(1, 3))
        return [loop(depth + 1) if depth < 1 and draw(st.booleans()) else one() for _ in range(size)]

    def one() -> tuple[object, ...]:
        back = draw(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=3))
        return next(lines), back, draw(st.integers(0, 2)), draw(st.sampled_from([0, 0, 0, 2]))

    def loop(depth: int) -> tuple[int, list[object]]:
        return draw(st.integers(2, 6)), body(depth)

    def run(parts: Sequence[object]) -> None:
        for part in parts:
            match part:
                case (int() as times, list() as inside):
                    for _ in range(times):
                        run(inside)
                case (int() as line, back, makes, same_line):
                    statement(line, back, makes, same_line)

    run([one(), one(), loop(0), one(), *([loop(0)] if draw(st.booleans()) else [])])
    return steps


@given(programs())
def test_names_mean_what_was_read_and_no_call_is_lost_whatever_the_loops(steps: list[Step]) -> None:
    folded = fold(steps)
    holds(folded, steps)
    assert folded.checked_count <= (MAX_CHECKS + 3) * len(steps)


@given(programs())
def test_what_is_measured_is_the_sum_of_the_calls_whatever_the_loops(steps: list[Step]) -> None:
    made_up = Recording("made up", tuple(steps), 1.0, 1.0, 1, 1, "cpu")
    for loops in (True, False):
        rows = document(made_up, loops=loops)[1]["ops"]
        assert sum(row["times"] for row in rows) == len(steps)
        assert sum(row["total_s"] for row in rows) == pytest.approx(made_up.inside, rel=1e-12)


@given(programs())
def test_names_that_are_wrong_only_become_fewer(steps: list[Step]) -> None:
    told: list[tuple[int, int]] = []
    fold(steps, tell=lambda right, calls: told.append((right, calls)))
    assert [right for right, _ in told] == sorted(right for right, _ in told)
    assert {calls for _, calls in told} <= {len(steps)}


# ---- a real one: the block of a transformer, again and again ----


@pytest.mark.parametrize("turns", [2, 3, 12, 40])
def test_blocks_that_share_their_weights_are_one_loop(tmp_path: Path, turns: int) -> None:
    """Three products stand in one line: a loop of their own, whose name would mean the last of them to who reads the first."""
    found = recorded(tmp_path, SHARED.format(turns=turns))
    folded = fold(found.steps)
    holds(folded, found.steps)
    assert len(list(folded.leaves())) < 30
    assert folded.notes == ()


@pytest.mark.parametrize("text", [SHARED, OWN], ids=["shared weights", "weights of their own"])
def test_a_block_takes_as_long_in_loops_as_written_out(tmp_path: Path, text: str) -> None:
    found = recorded(tmp_path, text.format(turns=12))
    times = []
    for loops in (True, False):
        path = tmp_path / f"{loops}.yaml"
        path.write_text(document(found, loops=loops)[0], encoding="utf-8")
        times.append(hwsim.simulate("laptop", path).makespan_s)
    assert times[0] == pytest.approx(times[1], rel=1e-12)


@pytest.mark.parametrize("text", [SHARED, OWN], ids=["shared weights", "weights of their own"])
def test_what_is_looked_at_grows_as_the_calls_do(tmp_path: Path, text: str) -> None:
    looked = {}
    for turns in (8, 16, 32, 64):
        steps = recorded(tmp_path, text.format(turns=turns)).steps
        folded = fold(steps)
        holds(folded, steps)
        looked[turns] = folded.checked_count / len(steps)
    assert len(set(looked.values())) == 1
    assert looked[8] < MAX_CHECKS


def test_blocks_with_weights_of_their_own_are_written_out_and_said(tmp_path: Path) -> None:
    """A name cannot be another array in every turn."""
    found = recorded(tmp_path, OWN.format(turns=12))
    folded = fold(found.steps)
    assert all(len(leaf.calls) == 1 for leaf in folded.leaves())
    assert any("is unrolled: `repeat` cannot" in note for note in folded.notes)


def test_loops_that_are_left_after_a_number_of_rounds_are_written_out_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hwsim_calibrate.recording.loops.MAX_CHECKS", 0)
    for text in (SHARED, OWN):
        found = recorded(tmp_path, text.format(turns=12))
        folded = fold(found.steps)
        holds(folded, found.steps)
        assert folded.checked_count <= 3 * len(found.steps)
