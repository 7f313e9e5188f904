"""Copies that come and go on the clock of a run: looks at the load, and requests that wait for a copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hwsim.engine import Host, IssuedOp, Waits
from hwsim.families.serving.actors.run import Sequence
from hwsim.families.serving.results.log import Late
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.families.serving.actors.scaled import Scaled


@dataclass
class Balancer:
    """An autoscaler, and the line of requests before it.

    Args:
        stands: sends a request that waited to a copy: its number, the request, its arrival, for what it waited.
        is_live: whether requests are there or come. api: fs until a request that is sent stands in the line of its copy.
        starting: label of the start of a copy that requests wait for.
    """

    scaled: Scaled
    stands: Callable[[Host, int, Sequence, int, Late], None]
    is_live: Callable[[], bool]
    api: int
    starting: int = -1
    _start: tuple[int, int] = (-1, -1)  # op of the start of a copy that requests wait for, and when it is ready

    def comes(self, driver: Host, sequence: Sequence, instant: int) -> int:
        """The number of the copy of a request that comes; -1: it waits for one."""
        number = self.scaled.asks(sequence, instant)
        if number < 0:
            self._awaits_start(driver, sequence.after[0])
            driver.env.process(self._looks(driver, self.scaled.next(instant) - instant))
        return number

    def scales(self, driver: Host) -> Waits:
        """Look at the load as long as requests come or are there."""
        while self.is_live():
            instant = int(driver.env.now)
            yield driver.env.timeout(self.scaled.next(instant) - instant)
            self.scaled.until(int(driver.env.now))
            self.releases(driver)

    def releases(self, driver: Host) -> None:
        """Requests that wait for a copy go to those that have room."""
        while (free := self.scaled.released(int(driver.env.now), self.api)) is not None:
            sequence, number, arrival, late = free
            if self._start[1] == int(driver.env.now):
                sequence.after = self._start
            self.stands(driver, number, sequence, arrival, late)

    def _awaits_start(self, driver: Host, after: int) -> None:
        """Note the start of the first copy where none is ready, as what the run waits for."""
        instant, ready = int(driver.env.now), self.scaled.first(int(driver.env.now))
        if ready > max(instant, self._start[1]):
            _, op = driver.issue([IssuedOp(self.starting, -1, time=ready - instant)], (after,) if after >= 0 else ())
            self._start = op, ready

    def _looks(self, driver: Host, wait: int) -> Waits:
        yield driver.env.timeout(wait)
        self.releases(driver)
