"""Residuals of all topics: predictions of rows not used for fitting, or with a device, source or generation held out."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path

from published import TOPICS
from published.residual import Residual, folded


def residuals(data: Path, topics: Iterable[str] = ()) -> list[Residual]:
    """Return the residuals of all topics, or of the given ones."""
    return [residual for topic in topics or TOPICS for residual in of_topic(topic, data)]


def of_topic(topic: str, data: Path) -> list[Residual]:
    """Return the residuals of a topic; none for a topic without a function `residuals(data)`."""
    own = getattr(importlib.import_module(f"published.{topic}"), "residuals", None)
    return list(folded(own(data))) if own is not None else []
