"""Play cases for a while, and count them by kind and findings by root: `python -m tests.fuzz.campaign --seconds 600`."""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from tests.fuzz.cases import KINDS, case_of
from tests.fuzz.play import play

GIGABYTE: Final = 1 << 30


def campaign(
    kinds: Sequence[str], first: int, seconds: float, most: int, gigabytes: float, output: Path | None
) -> dict[str, Any]:
    """Play case after case of all kinds in turn; write the counts from time to time."""
    _limit_memory(gigabytes)
    warnings.simplefilter("ignore")
    played: Counter[str] = Counter()
    codes: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    roots: dict[str, dict[str, Any]] = {}
    slow: dict[str, int] = {}
    began, seed, saved = time.monotonic(), first, 0.0
    while time.monotonic() - began < seconds and sum(played.values()) < most:
        for kind in kinds:
            case = case_of(kind, seed)
            outcome = play(case)
            played[kind] += 1
            codes[kind][str(outcome.code)] += 1
            if outcome.code == -1:
                slow.setdefault(f"{kind} {seed} {outcome.shown}", seed)
            if outcome.root:
                found = roots.setdefault(outcome.root, {"kind": kind, "seed": seed, "times": 0, "arguments": case.arguments,
                                                        "shown": outcome.shown})  # fmt: skip
                found["times"] += 1
        seed += 1
        if output is not None and time.monotonic() - saved > 20:
            saved = time.monotonic()
            _save(output, played, codes, roots, slow, time.monotonic() - began)
    return _save(output, played, codes, roots, slow, time.monotonic() - began)


def _save(output: Path | None, played: Any, codes: Any, roots: Any, slow: Any, seconds: float) -> dict[str, Any]:
    found = {
        "cases": sum(played.values()),
        "seconds": round(seconds),
        "played": played,
        "codes": codes,
        "roots": roots,
        "slow": slow,
    }
    if output is not None:
        output.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


def _limit_memory(gigabytes: float) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (int(gigabytes * GIGABYTE), resource.RLIM_INFINITY))


def main() -> None:
    """The command line of a campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--cases", type=int, default=10**9)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--gigabytes", type=float, default=3.0)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    found = campaign(given.kinds, given.first, given.seconds, given.cases, given.gigabytes, given.output)
    for kind in given.kinds:
        click.echo(f"{kind:24} {found['played'][kind]:8,}  {dict(found['codes'][kind])}")
    click.echo(f"{found['cases']:,} cases, {len(found['roots'])} roots, {len(found['slow'])} stopped")
    for root, each in sorted(found["roots"].items(), key=lambda item: -item[1]["times"]):
        click.echo(f"{each['times']:6} {root}   {each['kind']} {each['seed']}")
    sys.exit(1 if found["roots"] else 0)


if __name__ == "__main__":
    main()
