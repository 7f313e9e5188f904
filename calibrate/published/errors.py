"""Write `hwsim/errors.yaml`: errors of predictions by regime and by case (how the numbers behind them are known).

Half widths are quantiles of cross-validated residuals (`published.intervals`). A case without rows is derived from the nearest
better case, with the factor between the two cases in regimes that have both; the file marks such entries.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hwsim.origins import Case
from hwsim.results.errors import read as read_table
from published import llm_kinds, llm_rows, steps
from published.coverage import judged, paired
from published.intervals import LEVELS, Columns, columns, half_widths, mapped, parts
from published.numbers import spreads
from published.parts import declared
from published.ratios import PAIRS, works
from published.residual import Residual

FILE: Final = Path(__file__).resolve().parents[2] / "hwsim" / "errors.yaml"
CASES: Final[tuple[Case, ...]] = ("known", "source", "device", "generation", "outside")
FEWEST: Final = 5  # minimum rows of a regime and case for its own entry
BETTER: Final[Mapping[str, tuple[str, ...]]] = {  # cases from which a case without rows is derived, nearest first
    "known": (),
    "source": ("known",),
    "device": ("known", "source"),
    "generation": ("device", "known"),
    "outside": ("generation", "device", "known"),
}
# Cases that are at most as wide as these, if these have rows.
WORSE: Final[Mapping[str, tuple[str, ...]]] = {
    "known": (),
    "source": ("device", "generation"),
    "device": ("generation",),
    "generation": (),
    "outside": (),
}
WIDEST: Final = 3.0  # maximum half width, a factor of 20
OUTSIDE: Final = 2.0  # minimum width relative to that of another generation
LIKE: Final[Mapping[str, tuple[str, float]]] = declared("errors")["like"]

# Used if the residuals contain no steps. The correlation is between two runs of one framework.
STEPS: Final[Mapping[str, Any]] = {
    "own": {"known": 0.05, "source": 0.07, "device": 0.11, "generation": 0.11, "outside": 0.22, "stated": 0.0},
    "correlation": {"same framework": 0.5, "else": 0.0},
}
# Errors of held-out kinds (docs/validation/models.md); of versions, rms of four steps of experts by Megatron-Bridge of 2025.
NEW_KINDS: Final[Mapping[str, Any]] = {"spread": 0.182, "version": 0.345}
HEADER: Final = declared("errors")["header"]


def table(found: Sequence[Residual], data: Path) -> dict[str, Any]:
    """Return the whole file as data."""
    out = {"regimes": _filled(_regimes(found)), "steps": dict(STEPS), "kinds": {**NEW_KINDS, "measured": list[str]()},
           "ratio": dict(_ratios(found)), "numbers": spreads()}  # fmt: skip
    if any(residual.topic == "step" for residual in found):
        out["steps"]["own"] = steps.own(found, data, read_table(text(out)))
        out["kinds"]["measured"] = llm_kinds.measured([*llm_rows.rows(data), *llm_kinds.recent(data), *llm_kinds.small(data)])
    return out


def write(found: Sequence[Residual], data: Path, path: Path = FILE) -> None:
    """Write `errors.yaml`."""
    path.write_text(text(table(found, data)), encoding="utf-8")


def text(data: Mapping[str, Any]) -> str:
    """Return the file's text: one line per regime and case."""
    out = [HEADER + "{"]
    for index, (name, part) in enumerate(data.items()):
        out.append(f"{json.dumps(name)}: {{")
        out += _lines(part)
        out.append("}" + ("," if index + 1 < len(data) else ""))
    return "\n".join([*out, "}"]) + "\n"


def _lines(part: Mapping[str, Any]) -> Iterator[str]:
    for index, (key, value) in enumerate(part.items()):
        end = "," if index + 1 < len(part) else ""
        inner = list(value.items()) if isinstance(value, Mapping) else []
        if inner and isinstance(inner[0][1], Mapping):
            yield f" {json.dumps(key)}: {{"
            yield from (
                f"  {json.dumps(k)}: {json.dumps(v)}{',' if n + 1 < len(inner) else ''}" for n, (k, v) in enumerate(inner)
            )
            yield f" }}{end}"
        else:
            yield f" {json.dumps(key)}: {json.dumps(value)}{end}"


def read(path: Path = FILE) -> dict[str, Any]:
    """Return the file as data."""
    lines = path.read_text("utf-8").splitlines()
    return dict(json.loads("\n".join(line for line in lines if not line.startswith("#"))))


# ---- regimes ----


def _regimes(found: Sequence[Residual]) -> dict[str, dict[str, Any]]:
    """Return every regime and case with enough rows; "topic/*" contains all rows of a topic."""
    out: dict[str, dict[str, Any]] = {}
    for (topic, case), mine in mapped(found).items():
        rows = columns(mine)
        widths = {level: half_widths(rows, level) for level in LEVELS}
        for regime, mask in (*rows.regimes(), ("*", np.full(len(rows), True))):
            if mask.sum() >= FEWEST:
                half = {str(round(100 * level)): by.get(regime, whole) for level, (by, whole) in widths.items()}
                out.setdefault(f"{topic}/{regime}", {})[case] = _line(rows[mask], half)
    return dict(sorted(out.items()))


def _line(rows: Columns, half: Mapping[str, float]) -> dict[str, Any]:
    shared, scatter = parts(rows)
    return {
        "rows": len(rows),
        "units": len(np.unique(rows.unit)),
        "groups": len(np.unique(rows.group)),
        "shared": _three(shared),
        "scatter": _three(scatter),
        "bias": _three(float(np.median(rows.signed))),
        "half": dict(zip(half, map(_shown, itertools.accumulate(half.values(), max)), strict=True)),
    }


def _three(value: float) -> float:
    return float(f"{value:.3g}")


def _shown(half: float) -> float:
    return _three(min(half, WIDEST))


def _filled(found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return every case of every regime: cases without rows are derived, and no case is narrower than a better one."""
    factors = {case: _times(found, case) for case in CASES}
    out: dict[str, dict[str, Any]] = {}
    for name, own in found.items():
        lines: dict[str, Any] = {}
        for case in CASES:
            line = own.get(case) or _carried(own | lines, case, factors[case])
            times = OUTSIDE if case == "outside" else 1.0
            better = max(
                (peer for peer in BETTER[case] if peer in lines and peer != "source"), key=partial(_width, lines), default=""
            )
            wide = bool(better) and times * _width(lines, better) > line["half"]["90"]
            lines[case] = _widened(lines[better], better, times) if wide else line
        out[name] = lines
    for name, (like, wider) in LIKE.items():
        if name not in out:
            out[name] = {case: _widened(line, like, wider) for case, line in out[like].items()}
    return dict(sorted(out.items()))


def _width(lines: Mapping[str, Any], case: str) -> float:
    return float(lines[case]["half"]["90"])


def _times(found: Mapping[str, Mapping[str, Any]], case: Case) -> dict[str, float]:
    """Return by other case how much wider this case is: the median over regimes with both."""
    out: dict[str, float] = {}
    for other in CASES:
        ratios = [own[case]["half"]["90"] / own[other]["half"]["90"] for own in found.values() if case in own and other in own]
        enough = len(ratios) >= 3 and case != "outside"
        plain = OUTSIDE if case == "outside" else 1.0
        out[other] = statistics.median(ratios) if enough else plain
        if other in BETTER[case]:
            out[other] = max(1.0, out[other])
    return out


def _carried(lines: Mapping[str, Any], case: str, times: Mapping[str, float]) -> dict[str, Any]:
    """Return the entry of a case without rows, derived from the nearest better case, or else from the nearest worse one."""
    better = next((other for other in BETTER[case] if other in lines), None)
    if better is not None:
        found = _widened(lines[better], better, times[better])
        worst = [(other, lines[other]) for other in WORSE[case] if other in lines]
        if worst and worst[0][1]["half"]["90"] < found["half"]["90"]:
            return _widened(worst[0][1], worst[0][0], 1.0)
        return found
    worse = next(other for other in CASES if other in lines)
    return _widened(lines[worse], worse, min(1.0, times[worse]))


def _widened(line: Mapping[str, Any], of: str, times: float) -> dict[str, Any]:
    """Return an entry derived from another case or regime, widened by a factor.

    The error of an unmeasured device is common to all its kernels, so a wider entry increases the shared part, which does not
    average out over kernels. A narrower entry reduces both parts.
    """
    sigma = math.hypot(line["shared"], line["scatter"]) * times
    scatter = line["scatter"] * min(1.0, times)
    wider = {"shared": _three(math.sqrt(max(0.0, sigma**2 - scatter**2))), "scatter": _three(scatter)}
    half = {level: _shown(value * times) for level, value in line["half"].items()}
    return {"rows": 0, "units": 0, "groups": 0} | wider | {"bias": line["bias"], "half": half, "as": of, "times": _three(times)}


# ---- ratios ----


def _ratios(found: Sequence[Residual]) -> Iterator[tuple[str, Any]]:
    """Return by regime and case the correlation at which intervals of ratios have the promised coverage."""
    by = paired(judged(found), apart=True, shown={case: case for case in CASES})
    for name in sorted({name for name, _ in by}):
        lines = {}
        for case in CASES:
            both, sides = by.get((name, case), ([], []))
            if len(both) >= PAIRS:
                seen = works(both, sides)
                lines[case] = {"works": len(both), "pairs": len(np.unique(seen.pair)), "correlation": round(seen.alike(), 2)}
        if lines:
            yield name, lines
