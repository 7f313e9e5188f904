"""Write docs/d2l.md: the timings printed in the d2l chapter beside the simulated ones.  --check: only compare."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import hwsim
from hwsim.formats import format_between, format_quantity
from hwsim.results.invariants import checked_text
from scripts.d2l_hardware import HARDWARE
from scripts.d2l_row import Row
from scripts.d2l_rows import EXPERIMENTS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "d2l.md"
SECTIONS = {**EXPERIMENTS, **HARDWARE}

HEAD = """# The d2l chapter, measured and simulated

This page compares hwsim with the timings and calculations of the chapter "Computational Performance" of *Dive into Deep
Learning*. It is written by `python scripts/d2l.py`. For exercises with these workloads, see [the lab sheet](class.md).

- **fitted**: the figure was used to choose a parameter of the machine or runtime. The row shows that the model can represent it,
  and is not scored.
- **closed form**: a calculation in the book.
- **predicted**: no part of the printed figure was used. An empty column *printed* means that the book prints no measurement.

Of the 22 predicted times with a printed measurement, 20 are within their [90 % interval](intervals.md). No interval is widened
for a single row. Times of software from another computer or version are only known within a factor of 19.
"""


def command(row: Row) -> str:
    """What to type to get the simulated figure."""
    settings = "".join(
        f" --set {shlex.quote(f'{key}={str(value).lower() if value is True else value}')}" for key, value in row.changed.items()
    )
    return f"hwsim simulate {row.machine} {row.workload}{settings}"


def figures(row: Row, simulated: float) -> str:
    """The cells printed, simulated and ratio."""
    shown = format_quantity(simulated, row.unit)
    if row.printed is None:
        return f" | {shown} | "
    return f"{format_quantity(row.printed, row.unit)} | {shown} | {_ratio(simulated / row.printed)}"


def between(ends: tuple[float, float] | None) -> str:
    """The cell of the range."""
    return "" if ends is None else " to ".join(format_between(*ends, "s"))


def _ratio(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 100 else f"{ratio:,.0f}"


def page() -> str:
    """The whole page."""
    out = [HEAD]
    for title, (about, rows) in SECTIONS.items():
        out += [
            f"## {title}\n",
            f"{about}\n",
            "| experiment | printed | simulated | ratio | 90 % interval | kind | basis, or cause of the difference |",
            "|---|---|---|---|---|---|---|",
        ]
        commands = []
        for row in rows:
            run = hwsim.simulate(row.machine, row.workload, set=row.changed)
            simulated = row.figure(run)
            out.append(f"| {row.what} | {figures(row, simulated)} | {between(row.ends(run))} | {row.kind} | {row.why} |")
            commands.append(command(row))
        out += ["", "```sh", *dict.fromkeys(commands), "```", ""]
    return "\n".join(out)


def main() -> int:
    """Write the page, or say that it is out of date."""
    text = page()
    if "--check" in sys.argv[1:]:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(checked_text(text), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
