"""Damaged input of every kind, to every command: an answer or a mistake, and nothing else.

`python -m tests.fuzz.campaign` plays as many more as there is time for; docs/reliability.md has what it found.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.case import Case
from tests.fuzz.cases import KINDS, case_of
from tests.fuzz.kept import kept
from tests.fuzz.play import impossible, play

SECONDS = 60.0  # far more than any takes: no test hangs on how fast the computer is


@pytest.mark.parametrize("case", kept(), ids=lambda case: f"{case.kind} {case.seed}")
def test_what_was_found_stays_mended(case: Case) -> None:
    outcome = play(case, SECONDS)
    assert outcome.root == "", outcome.shown


@pytest.mark.parametrize("kind", list(KINDS))
def test_damaged_input_ends_in_an_answer_or_a_mistake(kind: str) -> None:
    for seed in range(6):
        outcome = play(case_of(kind, seed), SECONDS)
        assert outcome.root == "", (kind, seed, outcome.shown)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KINDS))
def test_much_more_damaged_input_ends_in_an_answer_or_a_mistake(kind: str) -> None:
    @settings(max_examples=80, derandomize=True)  # other seeds are the campaign's, which no change waits for
    @given(seed=st.integers(0, 2**32))
    def hold(seed: int) -> None:
        outcome = play(case_of(kind, seed), SECONDS)
        assert outcome.root == "", (kind, seed, outcome.shown)

    hold()


def test_a_case_is_made_of_its_seed_alone() -> None:
    assert all(case_of(kind, 5) == case_of(kind, 5) != case_of(kind, 6) for kind in KINDS)


@pytest.mark.parametrize(
    ("printed", "is_json"), [("\x1b[2J", False), ("a\u202eb", False), ('{"a": NaN}', True), ('{"a": 1e999}', True), ("{", True)]
)
def test_an_impossible_answer_is_noticed(printed: str, is_json: bool) -> None:
    assert impossible(printed, is_json)
    assert not impossible('{"a": [1.5, "é", null]}', True)
