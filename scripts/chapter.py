"""Write the d2l chapter as one playable page: `python scripts/chapter.py FILE.html`; the site's build writes it as chapter.html.

Each section has its text, live pieces (pages of `hwsim explore --save --predict`, without their files), and the chapter's numbers
beside hwsim's with their ranges and derivations. The file needs no server and no network.
"""

from __future__ import annotations

import html
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import jinja2

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]  # from conf.py, too

from hwsim.api import Run, simulate  # noqa: E402
from hwsim.explorer.derivations import more  # noqa: E402
from hwsim.explorer.offline import offline_content  # noqa: E402
from hwsim.explorer.saved import frame, packed  # noqa: E402
from hwsim.formats import format_quantity, format_share  # noqa: E402
from hwsim.results.activities import bounds_of  # noqa: E402
from hwsim.results.critical import critical_path  # noqa: E402
from hwsim.results.invariants import checked_text  # noqa: E402
from hwsim.ticks import FEMTO  # noqa: E402
from scripts.chapter_pieces import EXTRA, PIECES, Piece  # noqa: E402
from scripts.d2l import SECTIONS, between, commands_of, figures, value_of  # noqa: E402
from scripts.d2l_row import TIME, Row  # noqa: E402

PARTS: Final = Path(__file__).parent / "chapter_page"
NAME: Final = "chapter.html"
MOST_BOUNDS: Final = 4
MOST_OPS: Final = 2
STEPS: Final = {1: 15, 2: 9, 3: 6}  # values of each slider, by the number of sliders of a piece


def chapter() -> str:
    """Return the page."""
    order = [*SECTIONS]
    order[order.index("Hardware") : order.index("Hardware")] = [title for title in EXTRA if title in PIECES]
    sections = [
        {
            "title": title,
            "slug": re.sub(r"\W+", "-", title.lower()),
            "about": [_text(part) for part in (EXTRA.get(title) or SECTIONS[title][0]).split("\n\n")],
            "pieces": PIECES.get(title, ()),
            "numbers": [_number(row) for row in SECTIONS[title][1]] if title in SECTIONS else [],
        }
        for title in order
    ]
    contents = {piece.name: packed(_content(piece)) for pieces in PIECES.values() for piece in pieces}
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(PARTS), autoescape=True, undefined=jinja2.StrictUndefined)
    page = environment.get_template("page.html").render(
        sections=sections,
        contents=contents,
        frame=json.dumps(frame()).replace("</", "<\\/"),
        look=(PARTS / "page.css").read_text("utf-8"),
        script=(PARTS / "page.js").read_text("utf-8"),
    )
    return checked_text(page)


def _content(piece: Piece) -> dict[str, Any]:
    words = {"name": piece.name, "ask": piece.ask}
    return offline_content(
        piece.machine, piece.workload, settings=piece.settings, paths=piece.sliders, predict=True, piece=words, films=False,
        steps=STEPS[len(piece.sliders)],
    )  # fmt: skip


def _text(paragraph: str) -> str:
    """Return a paragraph of docs/d2l.md as HTML, without its links."""
    plain = html.escape(re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", paragraph), quote=False)
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", plain)


def _number(row: Row) -> dict[str, Any]:
    """Return a row of docs/d2l.md, with the derivation of its simulated figure."""
    run = simulate(row.machine, row.workload, set=row.changed)
    book, simulated, ratio = figures(row, value_of(row, run)).split(" | ")
    return {
        "what": row.what,
        "book": book.strip(),
        "simulated": simulated,
        "ratio": ratio.strip(),
        "range": between(row.ends(run)),
        "kind": row.kind,
        "why": row.why,
        "commands": commands_of(row),
        "line": row.reading.line.replace("`", ""),
        "sum": _sum(run) if row.reading is TIME else "",
        "ops": _derived(run, row),
    }


def _sum(run: Run) -> str:
    """Return the time as the sum of the critical path by bound."""
    parts = bounds_of(run.timeline, run.devices)
    shown = [f"{part.bound.full} {format_quantity(part.time_fs / FEMTO, 's')}" for part in parts[:MOST_BOUNDS]]
    rest = sum(part.time_fs for part in parts[MOST_BOUNDS:])
    if rest:
        shown.append(f"{len(parts) - MOST_BOUNDS} more {format_quantity(rest / FEMTO, 's')}")
    return f"{format_quantity(run.makespan_s, 's')} = {' + '.join(shown)}"


def _derived(run: Run, row: Row) -> list[dict[str, Any]]:
    """Return the derivations of the ops that take most of the critical path; of a row about one op, that of this op."""
    path, labels, label = critical_path(run.timeline), run.timeline.flat.graph.labels, run.timeline.flat.label
    times, counts = Counter[str](), Counter[str]()
    for op, start, end in zip(path.op.tolist(), path.start.tolist(), path.end.tolist(), strict=True):
        name = labels[int(label[op])].name
        times[name] += end - start
        counts[name] += 1
    derived = {found["name"]: found["lines"] for found in more(run, helps=False)["derived"]}
    own = [name for name in derived if row.reading.line.startswith(f"`{name}`")]
    chosen = own or [name for name, _ in times.most_common() if name in derived][:MOST_OPS]
    makespan = run.timeline.makespan_fs or 1
    return [
        {
            "name": name,
            "path": f"{counts[name]:,} on the critical path, {format_quantity(times[name] / FEMTO, 's')}, "
            f"{format_share(times[name] / makespan)} of the time"
            if times[name]
            else "not on the critical path",
            "lines": [
                {"label": text, "formula": formula, "numbers": numbers, "time": format_quantity(time, "s")}
                for text, formula, numbers, time in derived[name]
            ],
        }
        for name in chosen
    ]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"{__doc__}")
    Path(sys.argv[1]).write_text(chapter(), encoding="utf-8", newline="\n")
    print(sys.argv[1])
