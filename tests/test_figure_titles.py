"""Figures of different runs have different titles: every figure says what was set."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import hwsim

LOOP = ["d2l-laptop", "d2l/async-loop"]
FIGURES = [
    (["simulate", *LOOP, "--set", "n=11", "--plot", "gantt"], "n=11"),
    (["simulate", "d2l-gpu-workstation", "d2l/data-loading", "--set", "machine.cpu.cores=7", "--plot", "queues"], "cores=7"),
    (["explain", *LOOP, "--set", "n=11", "--no-what-if", "--plot"], "n=11"),
    (["sweep", *LOOP, "--vary", "n=11,12", "--set", "blocking=true", "--plot"], "blocking=true"),
    (["roofline", *LOOP, "--set", "n=11", "--plot"], "n=11"),
    (["latency", "d2l-laptop", "--set", "machine.cpu.cores=3", "--plot"], "cores=3"),
    (["collectives", "d2l-4gpu-pcie", "--bytes", "1MiB", "--set", "machine.gpu.count=3", "--plot"], "count=3"),
    (["show", "d2l-4gpu-pcie", "--set", "machine.gpu.count=3", "--topology"], "count=3"),
]


@pytest.mark.parametrize(("words", "said"), FIGURES, ids=lambda each: each[0] if isinstance(each, list) else "")
def test_a_figure_says_what_was_set(words: list[str], said: str, tmp_path: Path) -> None:
    figure = tmp_path / "figure.svg"
    hwsim(*words, figure)
    drawn = figure.read_text(encoding="utf-8")
    assert f"set {'machine.' if 'machine.' in ' '.join(words) else ''}" in drawn
    assert said in drawn
