"""The time over one number."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from hwsim.api import Run
from hwsim.engine import Deadlock
from hwsim.explorer.answer import instead
from hwsim.results.critical import families, limited_by
from hwsim.spec import SpecError
from hwsim.ticks import TooLong

BUDGET: Final = 0.5  # seconds of one answer
Runs = Callable[[Mapping[str, str]], Run]


def curve(runs: Runs, settings: Mapping[str, str], path: str, values: Sequence[str]) -> dict[str, Any]:
    """Times at values of one path, in their order, as many as fit into half a second; `left` has the others."""
    began, points = time.monotonic(), list[list[Any]]()
    for value in values:
        if points and time.monotonic() - began > BUDGET:
            break
        try:
            run = runs({**settings, path: value})
        except (SpecError, TooLong, Deadlock) as error:
            mistakes = getattr(error, "mistakes", ())
            says = mistakes[0].message if mistakes else str(getattr(error, "message", error)).partition("\n")[0]
            points.append([value, None, says, None])
        else:
            limit = next((name for name, _, _ in families(limited_by(run.timeline))), "nothing")
            points.append([value, run.makespan_s, limit, instead(run, "wanted")])
    return {"path": path, "points": points, "left": list(values[len(points) :])}
