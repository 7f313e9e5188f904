"""Score the models against what others published; arguments as in the package's docstring."""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path

from calibrate.published import TOPICS, scores_of
from calibrate.published.report import line, page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "validation" / "components.md"


def main() -> None:
    """Print the scores, or write the page, or print what the parameters would be."""
    parser = argparse.ArgumentParser(prog="python -m calibrate.published", description=__doc__)
    parser.add_argument("topics", nargs="*", choices=[*TOPICS, []], help="all if left out")
    parser.add_argument("--data", type=Path, default=os.environ.get("HWSIM_REFERENCE_DATA"), help="the folder of measurements")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.parent.name}/{PAGE.name}")
    parser.add_argument("--fit", action="store_true", help="print fitted parameters instead of scores")
    said = parser.parse_args()
    if said.data is None:
        parser.error("--data DIR is needed, or $HWSIM_REFERENCE_DATA")
    topics = list(TOPICS) if said.write or not said.topics else said.topics
    if said.fit:
        for topic in topics:
            importlib.import_module(f"calibrate.published.{topic}").fit(said.data)
        return
    found = {}
    for topic in topics:
        found[topic] = scores_of(topic, said.data)
        print(f"\n{topic}: {TOPICS[topic]}")
        for score in found[topic]:
            print("  " + line(score))
    if said.write:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
