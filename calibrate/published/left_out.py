"""Residuals of all topics: what a model says of rows it was not fitted to, or with a device, a source, a generation left out."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path

from published import TOPICS
from published.residual import Residual, folded


def residuals(data: Path, topics: Iterable[str] = ()) -> list[Residual]:
    """Residuals of all topics, or of these."""
    return [each for topic in topics or TOPICS for each in of_topic(topic, data)]


def of_topic(topic: str, data: Path) -> list[Residual]:
    """Residuals of one topic; none of a topic without a function `residuals(data)`."""
    own = getattr(importlib.import_module(f"published.{topic}"), "residuals", None)
    return list(folded(own(data))) if own is not None else []
