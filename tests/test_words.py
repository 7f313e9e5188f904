"""What commands say: per cent, reasons, hints, and each thing once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.demand import Choice
from hwsim.formats import format_change, format_share
from hwsim.spec import did_you_mean
from hwsim.studies.sweeps import sweep
from tests.command import hwsim


def ran(*words: str, code: int = 0) -> str:
    return " ".join(hwsim(*words, code=code).output.split())


@given(st.floats(-1, 1e6))
def test_a_change_is_written_without_an_exponent(change: float) -> None:
    text = format_change(change)
    assert re.fullmatch(r"[+-][0-9,]+(\.[0-9]+)? %", text)
    assert float(text.removesuffix(" %").replace(",", "")) == pytest.approx(100 * change, rel=0.06, abs=0.06)


@given(st.floats(0, 1))
def test_a_share_is_written_without_an_exponent_and_only_all_of_it_is_all(share: float) -> None:
    text = format_share(share)
    assert "e" not in text
    assert (text == "100 %") == (share >= 0.99999)
    assert (text == "0 %") == (share == 0)


def test_a_second_best_that_takes_twice_as_long_is_said_so() -> None:
    assert str(Choice("ring", 1.0, "tree", 2.1)) == "ring; next best tree +110 %"


@pytest.mark.parametrize(
    ("name", "known", "said"),
    [
        ("h100", ["h100-sxm", "h100-pcie", "h200"], "did you mean 'h100-pcie' or 'h100-sxm'?"),
        ("a100", ["dgx-a100", "h100"], "did you mean 'dgx-a100'?"),
        ("h10", ["h100", "h200"], "did you mean 'h100'?"),
        ("resnet", ["cnn/resnet-18", "cnn/resnet-50", "reset"], "did you mean 'cnn/resnet-18' or 'cnn/resnet-50'?"),
        ("H100", ["h100", "h100-sxm"], "did you mean 'h100'?"),
        ("x", ["x-y"], "known: x-y"),
    ],
)
def test_names_that_have_it_as_a_word_come_before_names_spelt_like_it(name: str, known: list[str], said: str) -> None:
    assert did_you_mean(name, known) == said


def test_a_name_of_the_library_is_found_by_its_beginning() -> None:
    assert "did you mean 'h100-pcie' or 'h100-sxm'?" in ran("show", "h100", code=2)


def test_a_workload_that_does_not_fit_a_machine_names_the_one_it_is_written_for() -> None:
    assert "hwsim simulate scale/rail-fat-tree llama3-70b --set let.nodes=16" in ran("simulate", "dgx-a100", "llama3-70b", code=2)


def test_a_pair_is_checked_without_running_it() -> None:
    assert ran("check", "d2l/async-loop", "--on", "d2l-laptop") == "d2l/async-loop on d2l-laptop: valid"
    assert "does not divide 8 GPUs" in ran("check", "llama3-70b", "--on", "dgx-a100", code=2)
    assert ran("check", "llama3-70b") == "llama3-70b: valid"


def test_a_mistake_of_a_file_that_several_use_is_printed_once(tmp_path: Path) -> None:
    (tmp_path / "part.yaml").write_text(
        "hwsim: part/1\nkind: gpu\nflop: {fp16: 1 TFLOPs}\nmemory: {size: 1 GB, bandwidth: 1 TB/s}\n"
    )
    for name in "ab":
        (tmp_path / f"{name}.yaml").write_text(
            "hwsim: machine/1\nclass: ideal\nparts: {gpu: {kind: gpu, use: ./part.yaml, count: 2}}\n"
        )
    said = ran("check", *(str(tmp_path / f"{name}.yaml") for name in ("a", "b", "part")), code=2)
    assert said.count("unknown unit 'TFLOPs'") == 1
    assert said.count("the same mistakes as above") == 2


def test_a_reason_begins_with_what_is_wrong_and_is_not_cut() -> None:
    text = str(sweep("dgx-h100", "llama3-8b-serving", {"rate": [10]}, workers=1))
    assert "(1) 10 has no unit: a rate is needed" in text
    assert "such as '10 1/s' (at llama3-8b-serving.yaml:12:23)" in " ".join(text.split())


def test_an_axis_of_sizes_keeps_their_units(tmp_path: Path) -> None:
    figure = tmp_path / "figure.svg"
    copy = "hwsim: workload/1\nlet: {size: 1 KiB}\nprogram: [{copy: {from: cpu, to: gpu0, bytes: $size}}]\n"
    sweep("d2l-4gpu-pcie", copy, {"size": "1 KiB..16 MiB:x4"}, workers=1).plot(figure)
    drawn = figure.read_text(encoding="utf-8")
    assert "1 KiB" in drawn
    assert "1.02 kB" not in drawn
