"""A page as one HTML file with inline style and script; it loads nothing, and its content security policy forbids loading."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from hwsim.version import __version__
from hwsim.views.kit.figure import GREY, LIGHT_COLOURS
from hwsim.views.report.sections import BarSection, FigureSection, Lines, Page, TableSection, TimelineSection, WaterfallSection

if TYPE_CHECKING:
    from jinja2 import Template

DIGITS: Final = 9  # digits of a time, precise to a millionth of a pixel
MARKS: Final = 5  # largest number of steps of a scale
# block of the template by class of a section
KINDS: Final = {
    BarSection: "bars",
    Lines: "lines",
    FigureSection: "picture",
    TimelineSection: "spans",
    TableSection: "table",
    WaterfallSection: "bars",
}


def written(page: Page) -> Iterable[bytes]:
    """Yield the file; same page, same bytes."""
    style, script = _file("page.css"), _file("page.js")
    text = _template().render(
        page=page,
        sections=[(KINDS[type(section)], _prepared(section)) for section in page.sections],
        style=style,
        script=script,
        allowed=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        version=__version__,
    )
    yield text.encode()


def _prepared(section: TableSection | Lines | BarSection | WaterfallSection | FigureSection | TimelineSection) -> Any:
    match section:
        case WaterfallSection():
            return _placed(section.bars())
        case BarSection():
            return _placed(section)
        case FigureSection():
            return {"section": section, "data": base64.b64encode(section.svg).decode()}
        case TimelineSection():
            return {"section": section, "data": _as_json(section)}
        case _:
            return {"section": section}


def _placed(bars: BarSection) -> dict[str, Any]:
    """Return positions and widths in per cent of the scale, which spans all bars, from 0 if it has numbers."""
    ends = [end for bar in bars.bars for end in (bar.low, bar.high)] + ([] if bars.centre is None else [bars.centre])
    low, high = min(ends, default=0.0), max(ends, default=0.0)
    marks = [] if bars.shown is None or high <= 0 else round_numbers(high)
    if marks:
        low, high = min(0.0, low), max(high, marks[-1])
    scale = 100.0 / (high - low) if high > low else 0.0
    rows = [(bar, f"{(bar.low - low) * scale:.3f}", f"{max((bar.high - bar.low) * scale, 0.2):.3f}") for bar in bars.bars]
    centre = None if bars.centre is None else f"{(bars.centre - low) * scale:.3f}"
    axis = [(f"{(mark - low) * scale:.3f}", bars.shown(mark)) for mark in marks if bars.shown is not None]
    return {"section": bars, "rows": rows, "centre": centre, "axis": axis}


def round_numbers(high: float) -> list[float]:
    """Return round numbers for a scale from 0 to a positive number: two to five steps of 1, 2 or 5.

    >>> round_numbers(7.52), round_numbers(26_400.0), round_numbers(0.21)
    ([0.0, 2.0, 4.0, 6.0, 8.0], [0.0, 10000.0, 20000.0, 30000.0], [0.0, 0.05, 0.1, 0.15, 0.2, 0.25])
    """
    tens = 10.0 ** math.floor(math.log10(high))
    step = next(size for size in (0.5 * tens, tens, 2.0 * tens, 5.0 * tens) if high / size <= MARKS)
    return [float(f"{number * step:.6g}") for number in range(math.ceil(high / step * (1 - 1e-12)) + 1)]


def _as_json(spans: TimelineSection) -> str:
    """Return the numbers of a timeline; `<` is escaped so that no name can close the element."""
    body = {
        "end": spans.end,
        "names": list(spans.names),
        "colours": [*LIGHT_COLOURS, GREY],
        "lanes": [
            {
                "name": lane.name,
                "start": [float(f"{start:.{DIGITS}g}") for start, _, _ in lane.spans],
                "took": [float(f"{took:.{DIGITS}g}") for _, took, _ in lane.spans],
                "of": [name for _, _, name in lane.spans],
            }
            for lane in spans.lanes
        ],
    }
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _file(name: str) -> str:
    return files("hwsim.views.report").joinpath(name).read_text("utf-8")


@lru_cache(maxsize=1)
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_file("page.html"))
