"""Autoscaling on the clock of a run: scaling decisions, and requests that wait for a replica."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hwsim.engine import Host, IssuedOp, Waits
from hwsim.families.serving.actors.run import Sequence
from hwsim.families.serving.results.log import Late
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.families.serving.actors.autoscaler import Autoscaler


@dataclass
class Balancer:
    """A process that applies an autoscaler, and sends waiting requests to replicas.

    Args:
        scaled: the autoscaler.
        stands: function that queues a request at a replica: (driver, replica, request, arrival, causes of its wait).
        is_live: function that tells whether requests are in flight or still arrive.
        api: time until a request reaches the queue of its replica (fs).
        starting: label of the op in which requests wait for a replica to start.
    """

    scaled: Autoscaler
    stands: Callable[[Host, int, Sequence, int, Late], None]
    is_live: Callable[[], bool]
    api: int
    starting: int = -1
    _start: tuple[int, int] = (-1, -1)  # (op of the replica start that requests wait for, time it is ready)

    def comes(self, driver: Host, sequence: Sequence, instant: int) -> int:
        """Return the replica of a new request; -1 if the request waits for one."""
        number = self.scaled.asks(sequence, instant)
        if number < 0:
            self._issue_start(driver, sequence.after[0])
            driver.env.process(self._release_later(driver, self.scaled.next(instant) - instant))
        return number

    def scales(self, driver: Host) -> Waits:
        """Make scaling decisions as long as requests arrive or are in flight."""
        while self.is_live():
            instant = int(driver.env.now)
            yield driver.env.timeout(self.scaled.next(instant) - instant)
            self.scaled.until(int(driver.env.now))
            self.releases(driver)

    def releases(self, driver: Host) -> None:
        """Send waiting requests to replicas with capacity."""
        while (free := self.scaled.released(int(driver.env.now), self.api)) is not None:
            sequence, number, arrival, late = free
            if self._start[1] == int(driver.env.now):
                sequence.after = self._start
            self.stands(driver, number, sequence, arrival, late)

    def _issue_start(self, driver: Host, after: int) -> None:
        """Issue an op for the start of the first replica if none is ready, so that the run waits for it."""
        instant, ready = int(driver.env.now), self.scaled.first(int(driver.env.now))
        if ready > max(instant, self._start[1]):
            _, op = driver.issue([IssuedOp(self.starting, -1, time=ready - instant)], (after,) if after >= 0 else ())
            self._start = op, ready

    def _release_later(self, driver: Host, wait: int) -> Waits:
        yield driver.env.timeout(wait)
        self.releases(driver)
