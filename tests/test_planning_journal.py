"""Journals of plans, and questions with mistakes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hwsim.planning import PlanAnswer, plan
from hwsim.spec import SpecError
from tests.command import hwsim
from tests.planning_cases import CORE, LOOP, asked, looped

# ---- journal


def test_a_journal_keeps_simulations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = {"wait": ["0 us", "20 us", "40 us"]}
    first = looped_with(question, tmp_path / "j")
    import hwsim.planning.option_simulation as running

    monkeypatch.setattr(running, "simulate", None)  # what is kept is not simulated again
    again = looped_with(question, tmp_path / "j")
    assert json.dumps(first.to_json()) == json.dumps(again.to_json())


def looped_with(vary: Mapping[str, Any], journal: Path) -> PlanAnswer:
    """The loop with a journal."""
    import yaml

    return plan({"machine": yaml.safe_dump(CORE), "workload": LOOP, "vary": dict(vary), "minimise": "time"}, journal=journal)


# ---- mistakes


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"require": ["cots at most 3 USD"]}, "did you mean 'cost'?"),
        ({"require": ["time at most 3 kW"]}, "a time is needed"),
        ({"require": ["time below 3 s"]}, "is not a requirement"),
        ({"require": ["time at most 1 s", "time at least 2 s"]}, "contradict each other"),
        ({"require": ["time p90 at most 1 s"]}, "has no percentiles"),
        ({"vary": {"m": [1]}}, "no parameter 'm'"),
        ({"vary": {"replicas": [0]}}, "whole numbers of at least 1"),
        ({"minimise": None}, "the question has no objective"),
        ({"maximise": "time"}, "got both"),
        ({"minimise": "tokens_per_s"}, "cannot minimise tokens_per_s: more is better"),
        ({"set": {"n": 3}, "vary": {"n": [1]}}, "both set and varied"),
        ({"slack": "-1"}, "cannot be negative"),
        ({"require": ["memory at most -5 %"]}, "memory cannot be at most -5 %"),
        ({"set": {"nn": 3}}, "no parameter 'nn'"),
        ({"workload": "llama-3-8b"}, "'llama-3-8b' is a model: a workload trains it"),
    ],
)
def test_mistakes_say_where_and_what(changed: Mapping[str, Any], said: str) -> None:
    import yaml

    question = {"machine": yaml.safe_dump(CORE), "workload": LOOP, "vary": {"n": [1]}, "minimise": "time", **changed}
    with pytest.raises(SpecError, match=".*" + said.replace("?", r"\?")):
        plan({key: value for key, value in question.items() if value is not None})


def test_a_strict_library_refuses_invented_parts(tmp_path: Path) -> None:
    for more, refused in (("", []), ("parts: {gpu: {power: 900 W}}\n", ["library"])):
        (tmp_path / "m.yaml").write_text("hwsim: machine/1\nuse: dgx-a100\n" + more, "utf-8")
        answer = asked(machine=str(tmp_path / "m.yaml"), minimise="step", simulate=0, strict_library=True)
        assert [reason.constraint for rejection in answer.rejected for reason in rejection.reasons] == refused


def test_a_part_without_a_price_is_named() -> None:
    answer = looped({"n": [1]}, require="cost at most 100 USD", minimise="time")
    assert answer.best is None
    assert answer.rejected[0].reasons[0].constraint == "price"
    assert "cpu" in answer.rejected[0].reasons[0].text


@pytest.mark.parametrize(
    ("given", "said"), [("n=[1,2", "this is not YAML"), ("nn=3", "no parameter 'nn'"), ("n=", "expected a value, got none")]
)
def test_a_mistake_of_a_flag_has_the_place_of_that_flag(given: str, said: str) -> None:
    asked = ("plan", "d2l-laptop", "d2l/async-loop", "--vary", "blocking=true,false", "--minimise", "time")
    done = hwsim(*asked, "--set", given, code=2)
    assert re.search(r"^--set\b.*" + said, done.stderr, re.MULTILINE)
    assert "--vary" not in done.stderr


def test_reasons_in_different_words_stand_apart_and_each_once() -> None:
    answer = plan({"machine": "dgx-h100", "workload": "resnet50-dp", "vary": {"gpus": [0, 16]}, "minimise": "step"})
    texts = [group.reason.text for group in answer.groups]
    assert len(texts) == 2
    assert texts[0] == "0 is below the minimum of 1"
    assert "16" in texts[1]


def test_what_misses_by_far_is_off_by_a_factor() -> None:
    answer = looped({"n": [10**5]}, require=["time at most 1 us"], minimise="time")
    assert "closest        n=100000, off by a factor of 1,000,000" in str(answer)
