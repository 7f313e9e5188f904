"""Every report hwsim knows: a result and a file suffix go in, the bytes of a file come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from hwsim.reports import explain, gantt, html, json, memory, queues, summary, trace
from hwsim.results.result import Result

Report = Callable[[Result, str], Iterable[bytes]]

REPORTS: Final[dict[str, Report]] = {
    "explain": explain.render,
    "gantt": gantt.render,
    "html": html.render,
    "json": json.render,
    "memory": memory.render,
    "queues": queues.render,
    "summary": summary.render,
    "trace": trace.render,
}
