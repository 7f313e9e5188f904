"""Failures on the command line: estimates, checks of files, and what is asked for in half."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import hwsim

ESTIMATE = ["estimate", "p5.48xlarge", "llama-3-70b", "--nodes", "448", "--tp", "4", "--pp", "4", "--global-batch", "2016"]
FAILS = [*ESTIMATE, "--tokens", "15e12", "--failures", "meta-llama-3", "--storage", "500 GB/s"]


def test_an_estimate_with_failures() -> None:
    """70.6 G parameters x 14 B over 500 GB/s; published: 6.4 M GPU-hours on H100, 5.2 M without failures."""
    document = json.loads(hwsim(*FAILS, "--json").output)
    saved, left = document["checkpoints"], document["failures"]
    assert saved["bytes"] == pytest.approx(70.55e9 * 14, rel=1e-3)
    assert saved["write_s"] == pytest.approx(saved["bytes"] / 500e9)
    assert left["mtbf_s"] / 3600 == pytest.approx(50677 / 3584, rel=1e-3)
    days = document["training"]["seconds"] / 86400
    assert days < left["days_low"] < left["days_mean"] < left["days_p90"] < left["days_high"]
    assert left["days_mean"] == pytest.approx(days / left["goodput"])
    assert 0.9 < left["goodput"] < 0.99
    step = document["interval"]
    assert left["days_total_low"] < left["days_mean"] * step["low_s"] / document["step_s"]
    assert left["days_total_high"] > left["days_mean"] * step["high_s"] / document["step_s"]


def test_storage_that_is_faster_than_the_cards_does_not_help() -> None:
    """448 nodes x 8 cards of 400 Gb/s are 179 TB/s."""
    times = [
        json.loads(hwsim(*FAILS[:-1], rate, "--json").output)["checkpoints"]["write_s"] for rate in ("500 TB/s", "5000 TB/s")
    ]
    assert times[0] == times[1] > 0.005


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*ESTIMATE, "--failures", "meta-llama-3"], "requires --tokens"),
        ([*ESTIMATE, "--tokens", "1e12", "--failures", "meta-llama-3"], "requires --storage"),
        ([*ESTIMATE, "--tokens", "1e12", "--storage", "2 TB/s"], "requires --failures"),
        ([*FAILS[:-1], "2 TB"], "2 TB"),
        ([*FAILS, "--plan", "auto"], "cannot be combined with --plan"),
        ([*FAILS[:-4], "--failures", "llama-4", "--storage", "2 TB/s"], "llama-4"),
        ([*FAILS[:-1], "1 MB/s"], "no progress"),
    ],
)
def test_what_is_asked_for_in_half(words: list[str], message: str) -> None:
    assert message in hwsim(*words, code=2).output


def test_a_file_of_rates_is_checked_and_shown(tmp_path: Path) -> None:
    file = tmp_path / "ours.yaml"
    file.write_text("hwsim: failures/1\nparts: {gpu: {mtbf: 1 h, failures: 3}}\n", encoding="utf-8")
    assert "either an `mtbf` or counted failures" in hwsim("check", str(file), code=2).output
    assert "meta-llama-3: valid" in hwsim("check", "meta-llama-3").output
    assert "268" in hwsim("show", "meta-llama-3").output
    assert "failures" in json.loads(hwsim("schema", "failures").output)["title"]
