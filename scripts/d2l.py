"""Write docs/d2l.md: the timings printed in the d2l chapter beside the simulated ones.  --check: only compare."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import hwsim
from hwsim.formats import format_between, format_quantity
from hwsim.results.invariants import checked_text
from scripts.d2l_hardware import HARDWARE
from scripts.d2l_parallel import PARALLEL
from scripts.d2l_row import Row
from scripts.d2l_software import SOFTWARE

PAGE = Path(__file__).resolve().parent.parent / "docs" / "d2l.md"
SECTIONS = {**SOFTWARE, **PARALLEL, **HARDWARE}
WIDE = 10.0  # upper / lower end of an interval that hardly tests a prediction

HEAD = """# The d2l chapter, measured and simulated

This page compares hwsim with the timings and calculations of the chapter "Computational Performance" of *Dive into Deep
Learning*. It is written by `python scripts/d2l.py`. For exercises with these workloads, see [the lab sheet](class.md).

- *book*: the printed measurements, from all editions and notebooks that we know; of a closed form, the result. An empty cell: the
  book has no figure.
- **fitted**: the figure was used to choose a parameter of the machine or runtime. The row shows that the model can represent it,
  and is not scored.
- **closed form**: a calculation in the book, or an exercise solved by hand.
- **predicted**: no part of the printed figure was used.
- *output*: the command below the table, by number, and the line and column of its output that show the figure.

Of the {all} printed measurements of predicted times, {inside} are within their [90 % interval](intervals.md). Intervals that span
more than a factor of 10 hardly test the model: times of software from another computer or version are only known within a
factor of 19. Without the {wide} measurements with such intervals, {narrow_inside} of {narrow} are within. No interval is
widened for a single row.
"""


def commands_of(row: Row) -> list[str]:
    """What to type to get the simulated figure, and the one that is subtracted from it."""
    settings = (
        "".join(
            f" --set {shlex.quote(f'{key}={str(value).lower() if value is True else value}')}" for key, value in changed.items()
        )
        for changed in (row.changed, row.less)
        if changed is not None
    )
    return [f"hwsim simulate {row.machine} {row.workload}{setting}" for setting in settings]


def value_of(row: Row, run: hwsim.Run) -> float:
    """The simulated figure."""
    value = row.reading.value(run)
    return value if row.less is None else value - row.reading.value(hwsim.simulate(row.machine, row.workload, set=row.less))


def figures(row: Row, simulated: float) -> str:
    """The cells book, simulated and ratio."""
    ratios = ", ".join(_ratio(simulated / printed) for printed in row.printed)
    return f"{', '.join(_shown(printed, row.unit) for printed in row.printed)} | {_shown(simulated, row.unit)} | {ratios}"


def _shown(value: float, unit: str) -> str:
    return f"{format_quantity(value, '1')} per second" if unit == "1/s" else format_quantity(value, unit)


def between(ends: tuple[float, float] | None) -> str:
    """The cell of the range."""
    return "" if ends is None else " to ".join(format_between(*ends, "s"))


def _ratio(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.2f}" if ratio >= 0.005 else f"{ratio:.1g}"


def head(scored: Sequence[tuple[float, tuple[float, float]]]) -> str:
    """The beginning of the page; each measurement is scored with its interval."""
    narrow = [(printed, ends) for printed, ends in scored if ends[1] <= WIDE * ends[0]]
    inside, narrow_inside = (sum(low <= printed <= high for printed, (low, high) in part) for part in (scored, narrow))
    wide = len(scored) - len(narrow)
    return HEAD.format(all=len(scored), inside=inside, wide=wide, narrow=len(narrow), narrow_inside=narrow_inside)


def page() -> str:
    """The whole page."""
    out, scored = [], list[tuple[float, tuple[float, float]]]()
    for title, (about, rows) in SECTIONS.items():
        out += [
            f"## {title}\n",
            f"{about}\n",
            "| experiment | book | simulated | ratio | 90 % interval | kind | output | basis, or cause of the difference |",
            "|---|---|---|---|---|---|---|---|",
        ]
        commands = list(dict.fromkeys(text for row in rows for text in commands_of(row)))
        for row in rows:
            run = hwsim.simulate(row.machine, row.workload, set=row.changed)
            ends = row.ends(run)
            if row.kind == "predicted" and ends is not None:
                scored += [(printed, ends) for printed in row.printed]
            place = " minus ".join(f"{commands.index(text) + 1}: {row.reading.line}" for text in commands_of(row))
            cells = figures(row, value_of(row, run)), between(ends), row.kind, place, row.why
            out.append(f"| {row.what} | {' | '.join(cells)} |")
        numbered = (f"{text}  # {number}" for number, text in enumerate(commands, start=1))
        out += ["", "```sh", *numbered, "```", ""]
    return "\n".join([head(scored), *out])


def main() -> int:
    """Write the page, or say that it is out of date."""
    text = page()
    if "--check" in sys.argv[1:]:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(checked_text(text), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
