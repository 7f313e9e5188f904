"""The live pieces of the playable chapter, read from chapter_page/pieces.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of the chapter with sliders, whose answer is hidden until the reader has predicted it.

    Args:
        name: name in the page's address.
        title: heading.
        ask: question.
        machine: machine of the library.
        workload: workload of the library.
        sliders: paths of one to three numbers that move.
        settings: settings of the run.
    """

    name: str
    title: str
    ask: str
    machine: str
    workload: str
    sliders: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


_READ: Final[dict[str, dict[str, Any]]] = yaml.safe_load(
    (Path(__file__).parent / "chapter_page" / "pieces.yaml").read_text("utf-8")
)
PIECES: Final = {title: tuple(Piece(**piece) for piece in section["pieces"]) for title, section in _READ.items()}
EXTRA: Final[dict[str, str]] = {title: section["about"] for title, section in _READ.items() if "about" in section}  # no timings
