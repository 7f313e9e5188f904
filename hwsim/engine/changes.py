"""An actor that changes capacities at given times: failures, clock drops, recoveries."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

from hwsim.graph.opgraph import Change

if TYPE_CHECKING:
    from simpy import Event

    from hwsim.engine import Host


def changing(changes: Sequence[Change]) -> Callable[[Host], Generator[Event, None, None]]:
    """Limits each capacity to its fraction when its time has come; a capacity of the machine that nothing uses is left out."""

    def actor(driver: Host) -> Generator[Event, None, None]:
        names = {capacity.name for capacity in driver.capacities}
        for change in sorted(changes):
            if change.at > driver.env.now:
                yield driver.env.timeout(change.at - driver.env.now)
            if change.capacity in names:
                driver.limit(change.capacity, change.fraction)

    return actor
