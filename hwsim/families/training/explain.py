"""Explanation of failures: the lost time of a training by kind of loss and by failed part."""

from __future__ import annotations

from collections.abc import Iterator

from hwsim.families.training.results import MAIN
from hwsim.formats import format_quantity, percent
from hwsim.results.training_failures import FailureOutcome
from hwsim.views.kit.failure_lines import accounted
from hwsim.views.kit.lines import bar


def lost(name: str, failing: FailureOutcome) -> Iterator[str]:
    """Yield the time of a training with failures by kind of loss, and the lost time by failed part."""
    whose = "" if name == MAIN else f" of {name}"
    to, by = accounted(failing)
    width = max(len(part) for part, _ in (*to, *by))
    for title, parts in ((f"time{whose} with failures", to), ("lost time by failed part", by)):
        yield from ("", title)
        for part, share in parts:
            time = format_quantity(share * failing.seconds, "s") if failing.seconds > 0 else ""
            yield f"  {part:<{width}}  {time:>9}  {percent(share):>6}  {bar(share)}"
