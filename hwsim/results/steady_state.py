"""Warning and error for services without a steady state or without counted requests."""

from __future__ import annotations

from collections.abc import Iterable

from hwsim.formats import format_count
from hwsim.spec import SpecError, Warning


def overloaded(who: str, queue_growth_per_s: float) -> Warning:
    """Return the warning that a service has no steady state.

    Args:
        who: name of the service, with its rates.
        queue_growth_per_s: growth of its requests in flight per second.
    """
    grows = f"requests in flight grow by {format_count(queue_growth_per_s)}/s, so latencies grow with the length of the run"
    return Warning("overloaded", f"{who}: no steady state, {grows}")


def refuse_empty(names: Iterable[str]) -> None:
    """Raise SpecError if all requests of a service arrive during the warm-up."""
    for name in names:
        message = f"every request{name and f' of {name}'} arrives during the `warm_up`, so none is counted"
        raise SpecError.of(None, message, "shorten `warm_up` or simulate more requests")
