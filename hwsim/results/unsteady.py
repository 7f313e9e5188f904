"""Services that do not keep up with what comes, or of which nothing counts, in words."""

from __future__ import annotations

from collections.abc import Iterable

from hwsim.formats import format_count
from hwsim.spec import SpecError, Warning


def overloaded(who: str, grows_per_s: float) -> Warning:
    """No steady state; who: a service, with its rates; grows_per_s: requests a second by which those there grow."""
    grows = f"those there grow by {format_count(grows_per_s)} a second, and times of requests with the run"
    return Warning("overloaded", f"{who}: no steady state, {grows}")


def refuse_empty(names: Iterable[str]) -> None:
    """Raise SpecError if there is any service whose requests are all of its warm-up."""
    for name in names:
        message = f"every request{name and f' of {name}'} comes within the `warm_up`, so that none counts"
        raise SpecError.of(None, message, "a shorter one, or more requests")
