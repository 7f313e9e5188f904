"""A progress bar for runs that take longer than a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress

AFTER: Final = 1.0  # time before the bar is shown (seconds)


@contextmanager
def progress(*, shown: bool, unit: str = "ops", after: float | None = None) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function to call with the numbers of finished and known units; None if no progress bar is shown."""
    if not shown:
        yield None
        return
    bar: Progress | None = None
    began = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal bar
        if bar is None:
            if time.monotonic() - began < (AFTER if after is None else after):
                return
            bar = _bar(unit)
            bar.start()
        bar.update(bar.task_ids[0], completed=done, total=total)

    try:
        yield report
    finally:
        if bar is not None:
            bar.stop()


def _bar(unit: str) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(unit), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(unit)
    return bar
