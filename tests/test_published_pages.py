"""The pages of validation, and the measurements that come with the sources."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from published import accounts, intervals_page, parts, scores_of, shipping, summary
from published.parts import table
from published.report import line, page
from published.residual import Residual
from published.score import Miss, Score, group_median, worst_of

LICENSED = ("MIT", "MIT-0", "Apache-2.0", "BSD-3-Clause")


@pytest.fixture(scope="module")
def listed() -> dict[str, Any]:
    return dict(yaml.safe_load((shipping.SHIPPED / "sources.yaml").read_text("utf-8")))


def test_every_table_that_is_shipped_is_listed_with_its_digest(listed: dict[str, Any]) -> None:
    there = {str(path.relative_to(shipping.SHIPPED)) for path in shipping.SHIPPED.glob("**/*.xz")}
    assert there == set(listed["tables"])
    for name, said in listed["tables"].items():
        packed = (shipping.SHIPPED / name).read_bytes()
        assert len(packed) == said["bytes"]
        assert hashlib.sha256(packed).hexdigest() == said["sha256"], name


def test_what_is_shipped_is_a_few_megabytes(listed: dict[str, Any]) -> None:
    assert sum(archive["bytes"] for archive in listed["tables"].values()) < 3_000_000


def test_only_licensed_sources_are_shipped(listed: dict[str, Any]) -> None:
    by_name = {origin["name"]: origin for origin in listed["sources"]}
    assert all(origin["licence"] in LICENSED for origin in listed["sources"] if origin["here"])
    assert not by_name["te42kyfo/gpu-benches"]["here"]
    for name in listed["tables"]:
        for row in table(shipping.SHIPPED / name.removesuffix(".xz")):
            source = shipping.source_of(name, row)
            assert by_name[shipping.name_of(source)]["here"], source
            break


def test_rows_that_are_shipped_name_their_source() -> None:
    rows = table(shipping.SHIPPED / "validation" / "01_gemm.csv")
    assert len(rows) > 1500
    assert all(shipping.licence(row["source"]) and not row["flag"] for row in rows)


def test_every_source_says_where_it_is(listed: dict[str, Any]) -> None:
    assert all(source["at"] and source["rows"] >= source["unflagged"] for source in listed["sources"])


@pytest.mark.parametrize("topic", ["core_to_core", "inference"])
def test_a_user_repeats_figures_without_other_files(topic: str) -> None:
    for score in scores_of(topic, shipping.SHIPPED):
        assert score.rows > 20
        assert score.value <= score.limit, line(score)


def test_figures_of_what_is_shipped_are_those_of_the_page(reference_data: Path) -> None:
    """Every figure of DeepBench is here: those of a GPU that only it measured are the same with and without a folder."""
    whole = {row["id"]: row for row in table(reference_data / "validation" / "01_gemm.csv")}
    for row in table(shipping.SHIPPED / "validation" / "01_gemm.csv"):
        assert row["value"] == whole[row["id"]]["value"]


# ---- pages ----


def made(topic: str, case: Any, device: str, log: float, work: str) -> Residual:
    """A residual of that logarithm."""
    return Residual(topic=topic, regime="big", case=case, unit=device, group=f"s, {device}", row=f"{device} {work}", work=work,
                    device=device, predicted=math.exp(log), measured=1.0)  # fmt: skip


@pytest.fixture(scope="module")
def found() -> list[Residual]:
    random = np.random.default_rng(1)
    gpus = [f"gpu{index}" for index in range(6)]
    cases = ("known", "source", "device")
    rows = [made("product", case, gpu, random.normal(0, 0.1), f"{n}") for case in cases for gpu in gpus for n in range(20)]
    return [*rows, made("product", "outside", "k80", -0.8, "0"), made("moe", "known", "gpu0", 0.1, "0")]


def test_a_quantity_has_a_row_for_every_evaluation(found: list[Residual]) -> None:
    text = summary.page(found, {})
    lines = [splitline for splitline in text.splitlines() if splitline.startswith("| GEMMs, 16")]
    assert [row.split("|")[2].strip() for row in lines] == ["interpolated", "cross-validated", "cross-validated", "not fitted"]
    assert "| 80 % | 80 % |" in lines[-1]


def test_a_bound_that_is_missed_is_bold() -> None:
    rows = [Miss("a", 1.3, 1.0, "g"), Miss("b", 1.1, 1.0, "g")]
    score = Score(name="x", metric="group median", value=group_median(rows)[0], bound=0.1, rows=2, half="cross-validated",
                  worst=worst_of(rows))  # fmt: skip
    assert "**18 %**" in summary.page([], {"gemm": [score]})
    text = page("components", {"gemm": [score]})
    assert "| gemm | x | cross-validated | 2 | 1 | 17.9 % | 24.6 % | 10 % (group median: **17.9 %**) |" in text
    assert "cause" not in text.split("largest errors |")[1].splitlines()[0]  # nobody investigated it
    assert "held out of the fit (cross-validated): median 18 %, 90th percentile 25 % (1 comparison)" in text


def test_a_reason_stands_where_somebody_looked() -> None:
    rows = [Miss("a", 1.3, 1.0, "g"), Miss("b", 1.1, 1.0, "g")]
    ranked = worst_of(rows, lambda miss: "split over k" if miss.row == "a" else "")
    score = Score(name="x", metric="mean relative error", value=0.2, bound=0.3, rows=2, worst=ranked)
    text = page("components", {"gemm": [score]})
    assert "| largest errors | group | predicted (s) | measured (s) | ratio | cause |" in text
    assert "split over k" in text
    assert "30 % (mean relative error: 20 %)" in text


def test_the_page_of_intervals_says_how_wide_and_how_right(found: list[Residual], tmp_path: Path) -> None:
    text = intervals_page.page(found, tmp_path)
    assert (tmp_path / intervals_page.PICTURE).exists()
    assert "| GEMMs, 16 and 32 bit | held-out device | 120 | 6 | 6 |" in text
    assert "Which device is faster" in text


def test_figures_that_are_read_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,value\na,1\nb,2\n", "utf-8")
    parts.read_figures = set()
    try:
        rows = table(path)
        assert rows[1]["value"] == "2"
        assert rows[0]["id"] == "a"
        assert parts.read_figures == {("t.csv", 1)}
    finally:
        parts.read_figures = None


def test_every_reason_for_a_row_without_a_score_is_of_a_source(listed: dict[str, Any]) -> None:
    names = {origin["name"] for origin in listed["sources"]}
    assert {source for _, source in accounts.WHY} <= names
