"""Warnings of services that do not keep up with what comes, or whose run is too short to tell.

Studies, comparisons and plans show them next to their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from hwsim.formats import format_count
from hwsim.results.services.answers import Services
from hwsim.results.serving import ServiceStatistics
from hwsim.spec.warning import Warning

FILLS: Final = "as they do while a service fills: too few to say whether it keeps up, and with more of them times are longer"
STARTS: Final = "as they do while copies start: too few come after that to say whether it keeps up"


def unsteady(serving: Iterable[ServiceStatistics], services: Services | None) -> Iterator[Warning]:
    """The warnings of served models, then of services that are programs."""
    for service in serving:
        of = f"{service.name}: " if service.name else ""
        yield from service.parts
        if service.overloaded:
            came, answered = format_count(service.offered_per_s, 4), format_count(service.answered_per_s, 4)
            rates = f"{came} requests/s came, {answered} were answered meanwhile"
            grows = f"those there grow by {format_count(service.grows_per_s)} a second, and times of requests with the run"
            yield Warning("overloaded", f"{of}{rates}: no steady state, {grows}")
        elif service.unsettled:
            why = FILLS if service.scaling is None else STARTS
            yield Warning("still-filling", f"{of}those there grow until the last request comes, {why}")
    if services is not None and services.stuck:
        yield Warning("services-stuck", f"never answered: {services.stuck}")
    for answers in () if services is None else services.answers:
        if answers.growth_per_s > 0:
            grows = f"those there grow by {format_count(answers.growth_per_s)} a second, and times of requests with the run"
            yield Warning("overloaded", f"{answers.name}: no steady state, {grows}")
