"""Score the models against what others published; arguments as in the package's docstring."""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path

from hwsim.results.invariants import printed
from published import PAGES, TOPICS, scores_of, topics_of
from published.report import line, page

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "validation"


def main() -> None:
    """Print the scores, or write the pages, or print what the parameters would be."""
    parser = argparse.ArgumentParser(prog="python -m published", description=__doc__)
    parser.add_argument("topics", nargs="*", choices=[*TOPICS, []], help="all if left out")
    parser.add_argument("--data", type=Path, default=os.environ.get("HWSIM_REFERENCE_DATA"), help="the folder of measurements")
    parser.add_argument("--write", action="store_true", help="write the pages of docs/validation")
    parser.add_argument("--page", choices=list(PAGES), help="the topics of this page alone")
    parser.add_argument("--fit", action="store_true", help="print fitted parameters instead of scores")
    parser.add_argument("--errors", action="store_true", help="write hwsim/errors.yaml")
    said = parser.parse_args()
    if said.data is None:
        parser.error("--data DIR is needed, or $HWSIM_REFERENCE_DATA")
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
        found[topic] = scores_of(topic, said.data)
        print(f"\n{topic}: {TOPICS[topic]}")
        for score in found[topic]:
            print("  " + line(score))
    if said.write:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name in pages:
            text = page(name, {topic: found[topic] for topic in topics_of(name)})
            (FOLDER / f"{name}.md").write_text(printed(text), encoding="utf-8")


if __name__ == "__main__":
    main()
