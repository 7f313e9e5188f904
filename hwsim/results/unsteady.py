"""Services that do not keep up with what comes, or of which nothing counts, in words."""

from __future__ import annotations

from collections.abc import Iterable

from hwsim.formats import format_count
from hwsim.spec import SpecError, Warning


def overloaded(who: str, grows_per_s: float) -> Warning:
    """No steady state; who: a service, with its rates; grows_per_s: growth of its requests in flight per second."""
    grows = f"requests in flight grow by {format_count(grows_per_s)}/s, so latencies grow with the length of the run"
    return Warning("overloaded", f"{who}: no steady state, {grows}")


def refuse_empty(names: Iterable[str]) -> None:
    """Raise SpecError if there is any service whose requests are all of its warm-up."""
    for name in names:
        message = f"every request{name and f' of {name}'} arrives during the `warm_up`, so that none counts"
        raise SpecError.of(None, message, "a shorter one, or more requests")
