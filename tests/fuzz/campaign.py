"""Play cases for a while, and count them by kind and findings by root: `python -m tests.fuzz.campaign --seconds 600`.

Kinds take turns so that each has the same time of computing: what is read fast is tried more often. Cases are played in a process
that is made anew every minute, so none follows a thousand others whose memory it shares, and one that dies is a finding.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tests.fuzz.cases import KINDS, case_of
from tests.fuzz.kept import as_line
from tests.fuzz.play import HERE, play

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

GIGABYTE: Final = 1 << 30
WARM: Final = 8  # cases of each kind that are not counted
TURN: Final = 20.0  # seconds of computing of a process


@dataclass
class Counts:
    """What was played.

    Args:
        spent: seconds of computing by kind.  following: the next seed by kind.
        roots: findings by root, each with its first case.  slow: cases that were stopped.
    """

    cases: Counter[str] = field(default_factory=Counter)
    codes: dict[str, Counter[str]] = field(default_factory=dict)
    spent: Counter[str] = field(default_factory=Counter)
    following: dict[str, int] = field(default_factory=dict)
    roots: dict[str, dict[str, Any]] = field(default_factory=dict)
    slow: dict[str, str] = field(default_factory=dict)

    def one(self, kind: str, seed: int) -> None:
        """Play a case and count it."""
        case = case_of(kind, seed)
        outcome = play(case)
        self.cases[kind] += 1
        self.codes.setdefault(kind, Counter())[str(outcome.code)] += 1
        if outcome.code == -1:
            self.slow.setdefault(outcome.shown, as_line(case))
        if outcome.root:
            self.found(outcome.root, as_line(case), outcome.shown)

    def found(self, root: str, line: str, shown: str) -> None:
        """Count a finding."""
        self.roots.setdefault(root, {"times": 0, "case": line, "shown": shown})["times"] += 1


def campaign(
    kinds: Sequence[str], first: int, seconds: float, most: int, gigabytes: float, output: Path | None
) -> dict[str, Any]:
    """Play cases, in turns of a minute; write the counts after each."""
    for kind in kinds:  # what is imported late or worked out once is there in each turn
        for seed in range(WARM):
            play(case_of(kind, seed))
    began, counts = time.monotonic(), Counts(following=dict.fromkeys(kinds, first))
    about = {"commit": _commit(), "first": first}
    while (left := seconds - (time.monotonic() - began)) > 0 and counts.cases.total() < most:
        counts = (
            _apart(counts, kinds, min(TURN, left), most, gigabytes) if hasattr(os, "fork") else _turn(counts, kinds, left, most)
        )
        found = {**about, "seconds": round(time.monotonic() - began), "total": counts.cases.total(), **vars(counts)}
        if output is not None:
            output.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return {**about, "total": counts.cases.total(), **vars(counts)}


def _apart(counts: Counts, kinds: Sequence[str], seconds: float, most: int, gigabytes: float) -> Counts:
    """A turn in a process of its own; the case in which it died is a finding."""
    context = multiprocessing.get_context("fork")
    mine, its = context.Pipe(duplex=False)
    process = context.Process(target=_play_apart, args=(mine, its, counts, kinds, seconds, most, gigabytes))
    process.start()
    its.close()
    last: tuple[str, int] | None = None
    with suppress(EOFError):
        while not isinstance(said := mine.recv(), Counts):
            last = said
            counts.following[last[0]] = last[1] + 1
        process.join()
        return said
    process.join()
    line = as_line(case_of(*last)) if last is not None else ""
    counts.found(f"the process died with {process.exitcode}", line, f"{last}")
    return counts


def _play_apart(
    parent: Connection, pipe: Connection, counts: Counts, kinds: Sequence[str], seconds: float, most: int, gigabytes: float
) -> None:
    parent.close()  # so that this process ends when its parent is gone
    _limit_memory(gigabytes)
    pipe.send(_turn(counts, kinds, seconds, most, pipe))
    pipe.close()
    os._exit(0)


def _turn(counts: Counts, kinds: Sequence[str], seconds: float, most: int, pipe: Connection | None = None) -> Counts:
    warnings.simplefilter("ignore")
    began = time.process_time()
    while (now := time.process_time()) - began < seconds and counts.cases.total() < most:
        kind = min(kinds, key=lambda each: counts.spent[each])
        seed = counts.following[kind]
        counts.following[kind] = seed + 1
        if pipe is not None:
            pipe.send((kind, seed))
        counts.one(kind, seed)
        counts.spent[kind] += time.process_time() - now  # type: ignore[assignment]  # seconds are no whole numbers
        if counts.cases.total() % 500 == 0:
            gc.collect()
    return counts


def _limit_memory(gigabytes: float) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (int(gigabytes * GIGABYTE), resource.RLIM_INFINITY))


def _commit() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=HERE, capture_output=True, text=True, check=False)
    return done.stdout.strip()


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
        click.echo(f"{kind:24} {found['cases'][kind]:8,}  {dict(found['codes'].get(kind, {}))}")
    click.echo(f"{found['total']:,} cases, {len(found['roots'])} roots, {len(found['slow'])} stopped")
    for root, failure in sorted(found["roots"].items(), key=lambda item: -item[1]["times"]):
        click.echo(f"{failure['times']:6} {root}\n{failure['case']}\n{failure['shown']}")
    sys.exit(1 if found["roots"] else 0)


if __name__ == "__main__":
    main()
