"""Every report hwsim knows: a result and a file suffix go in, the bytes of a file come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Final

from hwsim.results.result import Result

Report = Callable[[Result, str], Iterable[bytes]]


def report(name: str) -> Report:
    """The report of a module, imported when it is first written."""

    def render(result: Result, suffix: str) -> Iterable[bytes]:
        found: Iterable[bytes] = import_module(f"hwsim.reports.{name}").render(result, suffix)
        return found

    return render


REPORTS: Final[dict[str, Report]] = {
    "explain": report("explain"),
    "gantt": report("gantt"),
    "html": report("html"),
    "json": report("json"),
    "memory": report("memory"),
    "queues": report("queues"),
    "summary": report("summary"),
    "trace": report("trace"),
}
