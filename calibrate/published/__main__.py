"""Score the models against what others published; arguments as in the package's docstring."""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path

from hwsim.results.invariants import printed
from published import PAGES, TOPICS, scores_of, topics_of
from published.report import line, page
from published.shipping import SHIPPED

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "validation"


def main() -> None:
    """Print the scores, or write the pages, or print what the parameters would be."""
    parser = argparse.ArgumentParser(prog="python -m published", description=__doc__)
    parser.add_argument("topics", nargs="*", choices=[*TOPICS, []], help="all if left out")
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("HWSIM_REFERENCE_DATA", SHIPPED),
        help="the folder of measurements; without it those that come with hwsim",
    )
    parser.add_argument("--write", action="store_true", help="write the pages of docs/validation")
    parser.add_argument("--page", choices=list(PAGES), help="the topics of this page alone")
    parser.add_argument("--fit", action="store_true", help="print fitted parameters instead of scores")
    parser.add_argument("--errors", action="store_true", help="write hwsim/errors.yaml")
    said = parser.parse_args()
    if Path(said.data) == SHIPPED and (said.write or said.errors):
        parser.error("--data DIR is needed, or $HWSIM_REFERENCE_DATA: pages are written from all measurements")
    if said.errors:
        from published import errors, left_out

        errors.write(left_out.residuals(said.data))
        return
    pages = [said.page] if said.page else list(PAGES)
    topics = said.topics if said.topics and not said.write else [topic for name in pages for topic in topics_of(name)]
    if said.fit:
        for topic in topics:
            importlib.import_module(f"published.{topic}").fit(said.data)
        return
    found = {}
    for topic in topics:
        print(f"\n{topic}: {TOPICS[topic]}")
        try:
            found[topic] = scores_of(topic, Path(said.data))
        except (FileNotFoundError, KeyError, ValueError):  # no table, or no row in it
            if Path(said.data) != SHIPPED:
                raise
            print(f"  its figures do not come with hwsim: {SHIPPED / 'sources.yaml'} says where they are")
            continue
        for score in found[topic]:
            print("  " + line(score))
    if said.write:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name in pages:
            text = page(name, {topic: found[topic] for topic in topics_of(name)})
            (FOLDER / f"{name}.md").write_text(printed(text), encoding="utf-8")


if __name__ == "__main__":
    main()
