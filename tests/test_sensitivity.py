"""Sensitivity: laws of tornados, of choices and of break-even, and the command on real files."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.sensitivities.analysis import sensitivity
from hwsim.sensitivities.choice import break_even, wrong_after, wrong_now
from hwsim.sensitivities.terms import UncertainInput, terms_of
from hwsim.sensitivities.tornado import End, tornado
from hwsim.spec import SpecError, read_text, tree_of
from hwsim.views.explain.numbers import FileNumber
from tests.command import hwsim


def terms(*names: str) -> list[UncertainInput]:
    numbers = [FileNumber(name.partition(".")[0], name.partition(".")[2], f"machine.{name}", 1.0, "s", "1 s") for name in names]
    return [UncertainInput(name, number, 0.1, "guess") for name, number in zip(names, numbers, strict=True)]


# ---- tornado ----


@given(st.dictionaries(st.sampled_from(["a.x", "a.y", "a.z", "b.x", "b.y"]), st.floats(-3, 3), min_size=1))
def test_every_bar_holds_the_answer_and_numbers_without_effect_have_none(weights: dict[str, float]) -> None:
    def evaluate(group: Sequence[UncertainInput], end: End) -> float:
        sign = {"low": -1, "high": 1}[end]
        return 10.0 + sum(weights[term.name] * sign for term in group if weights[term.name])

    bars = tornado(10.0, terms(*weights), evaluate)
    assert all(bar.low <= bar.answer <= bar.high for bar in bars)
    assert {bar.name for bar in bars} <= {name for name, weight in weights.items() if weight}
    assert [bar.swing for bar in bars] == sorted((bar.swing for bar in bars), reverse=True)
    lone = [name for name, weight in weights.items() if abs(weight) > 1e-9]
    if len(lone) == 1:
        assert [bar.name for bar in bars if bar.swing > 1e-9] == lone


def test_a_part_that_moves_nothing_costs_two_runs() -> None:
    called: list[int] = []

    def evaluate(group: Sequence[UncertainInput], end: End) -> float:
        called.append(len(group))
        return 1.0

    assert tornado(1.0, terms(*(f"nic.{n}" for n in range(40))), evaluate) == ()
    assert called == [40, 40]


def test_an_end_that_the_files_refuse_is_the_answer_itself() -> None:
    [bar] = tornado(1.0, terms("a.x"), lambda _, end: None if end == "high" else 0.5)
    assert (bar.low, bar.high, bar.refused) == (0.5, 1.0, "high")


# ---- choices ----


@given(st.floats(0.2, 5), st.floats(0.01, 2), st.floats(0, 1))
def test_a_measurement_makes_a_wrong_choice_no_likelier(value: float, half: float, share: float) -> None:
    now, after = wrong_now(value, half), wrong_after(value, half, share)
    assert -1e-9 <= after <= now + 1e-6
    assert wrong_now(1 / value, half) == pytest.approx(now)


def test_the_probability_of_a_wrong_choice_is_that_of_samples() -> None:
    import numpy as np

    draw = np.random.default_rng(0)
    sigma, middle, share = 0.2 / 1.6449, math.log(1.1), 0.6
    known = middle + sigma * math.sqrt(share) * draw.standard_normal(200_000)
    truth = known + sigma * math.sqrt(1 - share) * draw.standard_normal(200_000)
    assert wrong_now(1.1, 0.2) == pytest.approx(float((truth < 0).mean()), abs=0.004)
    assert wrong_after(1.1, 0.2, share) == pytest.approx(float((truth * known < 0).mean()), abs=0.004)


@given(st.floats(0.3, 3.5))
def test_break_even_is_where_both_are_equal(factor: float) -> None:
    found = break_even(lambda times: factor / times)
    assert found is not None
    assert found == pytest.approx(factor, rel=2e-3)


def test_no_break_even_where_the_order_stays_or_nothing_runs() -> None:
    assert break_even(lambda factor: 2.0 + factor) is None
    assert break_even(lambda factor: 1.5 if factor == 1 else None) is None


# ---- numbers of files ----

MACHINE = """
hwsim: machine/1
class: ideal
parts:
  cpu:
    kind: cpu
    cores: 4
    flop: {fp32: {value: 100 GFLOP/s, spread: 10 %}}
    memory: {bandwidth: {value: 40 GB/s, source: guess}}
  gpu: {kind: gpu, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: {value: 500 GB/s, source: datasheet}}}
links:
  - {name: slot, between: [cpu, gpu], kind: pcie, bandwidth: {value: 16 GB/s, source: measured}}
"""
COMPUTE: dict[str, Any] = {"hwsim": "workload/1", "program": [{"compute": {"device": "cpu", "flop": "1 TFLOP", "dtype": "fp32"}}]}


def test_numbers_have_the_range_of_their_source_and_counts_have_none() -> None:
    found = {term.name: term for term in terms_of(read_text(MACHINE), tree_of(COMPUTE))}
    assert {name: round(term.sigma, 3) for name, term in found.items()} == {
        "cpu.flop.fp32": 0.1,
        "cpu.memory.bandwidth": 0.25,
        "gpu.memory.bandwidth": 0.05,
        "link slot.bandwidth": 0.03,
    }
    assert found["cpu.flop.fp32"].range == "84.8–118 GFLOP/s"
    assert found["link slot.bandwidth"].low[0] == "machine.links.slot.bandwidth"


def test_a_share_stays_below_all_of_it() -> None:
    term = UncertainInput("x", FileNumber("cpu", "x", "machine.cpu.x", 0.97, "1", "97 %"), 0.2, "guess")
    assert term.range == "69.8–100 %"


def test_a_stated_spread_of_a_workload_is_moved_by_its_parameter() -> None:
    workload = {
        "hwsim": "workload/1",
        "let": {"t": {"value": "15 ms", "spread": "20 %"}},
        "program": [{"busy": {"device": "cpu", "name": "wait", "time": "$t"}}],
    }
    answer = sensitivity(read_text(MACHINE), workload)
    [bar] = [bar for bar in answer.bars if bar.settings]
    assert bar.name == "t"
    assert bar.at_low == pytest.approx(0.015 * math.exp(-1.6449 * 0.2), rel=1e-6)
    assert bar.at_high == pytest.approx(0.015 * math.exp(1.6449 * 0.2), rel=1e-6)


def test_only_what_the_run_needs_has_a_bar() -> None:
    answer = sensitivity(read_text(MACHINE), COMPUTE)
    assert [bar.name for bar in answer.bars if bar.settings] == ["cpu.flop.fp32"]
    assert answer.idle == 3
    assert answer.answer == pytest.approx(10.0)
    assert all(bar.low <= answer.answer <= bar.high for bar in answer.bars)


def test_two_options_have_a_break_even_and_a_share_that_both_have_cancels() -> None:
    answer = sensitivity(read_text(MACHINE), COMPUTE, set_b={"machine.cpu.memory.bandwidth": "80 GB/s"})
    assert answer.answer == 1.0
    assert not [bar for bar in answer.bars if bar.name == "cpu.flop.fp32"]  # both have it
    faster = sensitivity(read_text(MACHINE), COMPUTE, set_b={"machine.cpu.flop.fp32": "{value: 120 GFLOP/s, spread: 10 %}"})
    assert faster.answer == pytest.approx(1.2)
    [point] = [crossing for crossing in faster.breaks if crossing.name == "cpu.flop.fp32"]
    assert point.factor == pytest.approx(1 / 1.2, rel=2e-3)
    assert point.written == "100 GFLOP/s"


def test_a_wide_range_is_said_by_its_ends() -> None:
    """`+-428 %` is no range of a time; a link that holds a disk back makes the ends unlike."""
    cpu = {"kind": "cpu", "cores": 4, "flop": {"fp32": "1 TFLOP/s"}, "memory": {"bandwidth": "100 GB/s"}}
    disk = {"kind": "disk", "read": {"value": "1 GB/s", "spread": 1.0}}
    machine = {"hwsim": "machine/1", "class": "ideal", "parts": {"cpu": cpu, "disk": disk}}
    for rate, text in (("1 GB/s", "(+0.0/+418 %)"), ("10 GB/s", "(-81/+418 %)")):
        link = {"between": ["cpu", "disk"], "kind": "direct", "bandwidth": rate}
        read = {"hwsim": "workload/1", "program": [{"read": {"from": "disk", "bytes": "1 GB"}}, {"wait": "all"}]}
        answer = sensitivity({**machine, "links": [link]}, read)
        assert text in str(answer)
        assert all(
            answer.ends[0] <= bar.low <= bar.high <= answer.ends[1] * (1 + 1e-9) for bar in answer.bars if not bar.settings
        )


# ---- the command ----


def test_two_machines_and_their_choice(tmp_path: Path) -> None:
    done = hwsim(
        "sensitivity", "d2l-laptop", "d2l/queue-memory", "--against", "d2l-quad-core", "--json", "--plot", tmp_path / "t.svg"
    )
    found = json.loads(done.stdout)
    assert found["hwsim"] == "sensitivity/2"
    assert found["answer"] == pytest.approx(9.3368954186162 / 28.0255499092307)
    assert found["wrong_choice"] is not None
    assert sum(doubt["share"] for doubt in found["measure_first"]) == pytest.approx(1.0, abs=1e-6)
    assert (tmp_path / "t.svg").read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dgx-a100", "nothing"], "there is no workload 'nothing'"),
        (["dgx-h100", "llama3-8b-serving"], "choose a measure of the service"),
        (["d2l-laptop", "d2l/async-loop", "--by", "speed"], "no measure 'speed'"),
        (["d2l-laptop", "d2l/async-loop", "--set-b", "n"], "is not of the form PATH=VALUE"),
        (["d2l-laptop", "d2l/async-loop", "--plot", "x.txt"], "a figure must end in"),
    ],
)
def test_mistakes_say_what_is_accepted(arguments: list[str], message: str) -> None:
    done = hwsim("sensitivity", *arguments, code=2)
    assert message in done.stderr


def test_a_machine_with_mistakes_is_refused() -> None:
    with pytest.raises(SpecError):
        sensitivity(read_text(MACHINE.replace("kind: gpu", "kind: gqu")), COMPUTE)
