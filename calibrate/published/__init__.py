"""The models beside what others measured and published, and beside reference simulators.

    python -m calibrate.published --data DIR            print the scores
    python -m calibrate.published --data DIR --write    write docs/validation/components.md
    python -m calibrate.published --data DIR --fit gemm print what a topic's parameters would be

DIR holds `validation/` (measurements) and `oracles/` (reference simulators' curves); it is
$HWSIM_REFERENCE_DATA if that is set.  A topic is one module here with a function `scores(data)`.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Final

from calibrate.published.score import Score

# Topic: (module in this package, what it is about).  A new topic is a new file and a line here.
TOPICS: Final[dict[str, str]] = {}


def scores_of(topic: str, data: Path) -> tuple[Score, ...]:
    """The scores of one topic."""
    found: tuple[Score, ...] = importlib.import_module(f"{__name__}.{topic}").scores(data)
    return found
