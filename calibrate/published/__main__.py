"""Score the models against published measurements; the package's docstring lists the arguments."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from hwsim.results.invariants import checked_text
from published import PAGES, TOPICS, accounts, errors, intervals_page, left_out, parts, scored, scores_of, summary, topics_of
from published.report import line, page
from published.score import Score
from published.shipping import SHIPPED

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "validation"
OF_ALL: Final = ("summary", "intervals", "score", "sources")  # pages that cover all topics
Scores = Mapping[str, Sequence[Score]]


def main() -> None:
    """Print the scores, write the pages, or write `hwsim/errors.yaml`."""
    parser = argparse.ArgumentParser(prog="python -m published", description=__doc__)
    parser.add_argument("topics", nargs="*", choices=[*TOPICS, []], help="topics to score; default: all")
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("HWSIM_REFERENCE_DATA", SHIPPED),
        help="folder of measurements; default: the measurements distributed with hwsim",
    )
    parser.add_argument("--write", action="store_true", help="write the pages of docs/validation")
    parser.add_argument("--page", choices=[*PAGES, *OF_ALL], help="write only this page")
    parser.add_argument("--errors", action="store_true", help="write hwsim/errors.yaml")
    said = parser.parse_args()
    data = Path(said.data)
    if data == SHIPPED and (said.write or said.errors):
        parser.error("--write and --errors need all measurements: give --data DIR or set $HWSIM_REFERENCE_DATA")
    pages = [said.page] if said.page else [*PAGES, *OF_ALL]
    if said.errors:
        errors.write(left_out.residuals(data), data)
        return
    topics = said.topics if said.topics and not said.write else _topics(pages)
    if said.write:
        parts.read_figures = set()
    found = scores_by_topic(topics, data)
    if said.write:
        write(pages, found, data)


def _topics(pages: Sequence[str]) -> list[str]:
    """Return the topics needed for pages: all topics for the summary and the sources, none for the intervals."""
    names = PAGES if {"summary", "sources"} & set(pages) else [name for name in pages if name in PAGES]
    return [topic for name in names for topic in topics_of(name)]


def scores_by_topic(topics: Sequence[str], data: Path) -> dict[str, tuple[Score, ...]]:
    """Print and return the scores of topics; skip topics whose measurements are not distributed with hwsim."""
    found = {}
    for topic in topics:
        print(f"\n{topic}: {TOPICS[topic]}")
        try:
            found[topic] = scores_of(topic, data)
        except (FileNotFoundError, KeyError, ValueError):  # missing or empty table
            if data != SHIPPED:
                raise
            print(f"  skipped: its measurements are not distributed with hwsim; {SHIPPED / 'sources.yaml'} lists the sources")
            continue
        for score in found[topic]:
            print("  " + line(score))
    return found


def write(pages: Sequence[str], found: Scores, data: Path) -> None:
    """Write pages of docs/validation."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    residuals = left_out.residuals(data) if set(OF_ALL) & set(pages) else []
    read, parts.read_figures = parts.read_figures or set(), None
    for name in pages:
        if name == "summary":
            text = summary.page(residuals, found)
        elif name == "intervals":
            text = intervals_page.page(residuals, FOLDER)
        elif name == "score":
            text = scored.page(residuals)
        elif name == "sources":
            text = accounts.page(data, read)
        else:
            text = page(name, {topic: found[topic] for topic in topics_of(name)})
        (FOLDER / f"{name}.md").write_text(checked_text(text), encoding="utf-8")


if __name__ == "__main__":
    main()
