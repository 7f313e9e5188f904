"""The models stay as near to published measurements as docs/validation says they are."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from published import TOPICS, scores_of

# Minutes of simulation; the closed forms and the smaller oracles of these topics are in the tests of their modules
LONG = frozenset({
    "attention", "babelstream", "cnn_inference", "cnn_simulated", "cnn_training", "collectives_levels", "collectives_serving",
    "decode", "dram", "gpu_bandwidth", "llm_simulated", "llm_training", "moe", "peers", "products_serving", "programs",
    "serving", "twins_storage",
})  # fmt: skip


def test_topics_that_take_long_are_topics() -> None:
    assert set(TOPICS) > LONG


@pytest.mark.parametrize("topic", [pytest.param(topic, marks=[pytest.mark.slow] * (topic in LONG)) for topic in TOPICS])
def test_every_score_keeps_its_bound(topic: str, reference_data: Path) -> None:
    scores = scores_of(topic, reference_data)
    assert scores
    for score in scores:
        assert score.rows > 0, score.name
        assert score.value <= score.limit, f"{score.name}: {score.value:.4f}, at most {score.limit:.4f}"
        assert score.reached is None or score.notes, f"{score.name}: a bound is missed without a word why"


def test_every_topic_has_its_file(root: Path) -> None:
    files = {path.stem: path.read_text("utf-8") for path in (root / "calibrate" / "published").glob("*.py")}
    assert {name for name, text in files.items() if "\ndef scores(data: Path)" in text} == set(TOPICS)


def test_every_declaration_is_read(root: Path) -> None:
    folder = root / "calibrate" / "published"
    for path in (folder / "declared").glob("*.yaml"):
        text = (folder / f"{path.stem}.py").read_text("utf-8")
        unread = [key for key in yaml.safe_load(path.read_text("utf-8")) if f'declared("{path.stem}")["{key}"]' not in text]
        assert unread == [], path.name
