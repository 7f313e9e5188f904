"""A page as one HTML file: style and script are in it, it loads nothing, and its policy forbids it to."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from hwsim.version import __version__
from hwsim.views.kit.figure import COLOURS, OTHER
from hwsim.views.report.sections import Bars, Lines, Page, Picture, Spans, Table, Waterfall

if TYPE_CHECKING:
    from jinja2 import Template

DIGITS: Final = 9  # of a time in the timeline: to a millionth of a pixel


def written(page: Page) -> Iterable[bytes]:
    """The file; the same page gives the same bytes."""
    style, script = _file("page.css"), _file("page.js")
    text = _template().render(
        page=page,
        sections=[(_kind(section), _prepared(section)) for section in page.sections],
        style=style,
        script=script,
        allowed=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        version=__version__,
    )
    yield text.encode()


def _kind(section: object) -> str:
    return "bars" if isinstance(section, Waterfall) else type(section).__name__.lower()


def _prepared(section: Table | Lines | Bars | Waterfall | Picture | Spans) -> Any:
    match section:
        case Waterfall():
            return _placed(section.bars())
        case Bars():
            return _placed(section)
        case Picture():
            return {"section": section, "data": base64.b64encode(section.svg).decode()}
        case Spans():
            return {"section": section, "data": _as_json(section)}
        case _:
            return {"section": section}


def _placed(bars: Bars) -> dict[str, Any]:
    """Places and widths in per cent of the scale, which ends where the outermost bars end."""
    ends = [end for bar in bars.bars for end in (bar.low, bar.high)] + ([] if bars.centre is None else [bars.centre])
    low, high = min(ends, default=0.0), max(ends, default=0.0)
    scale = 100.0 / (high - low) if high > low else 0.0
    rows = [(bar, f"{(bar.low - low) * scale:.3f}", f"{max((bar.high - bar.low) * scale, 0.2):.3f}") for bar in bars.bars]
    centre = None if bars.centre is None else f"{(bars.centre - low) * scale:.3f}"
    return {"section": bars, "rows": rows, "centre": centre}


def _as_json(spans: Spans) -> str:
    """Numbers of a timeline; `<` is written so that no name can end the element that holds it."""
    body = {
        "end": spans.end,
        "names": list(spans.names),
        "colours": [*COLOURS, OTHER],
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
