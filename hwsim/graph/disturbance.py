"""Disturbances of a machine during a run (slowdown, outage or jitter of a part), for reports."""

from __future__ import annotations

from hwsim.formats import format_quantity, percent
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A disturbance of one part or link.

    Args:
        part: name of the part or link.
        at_s: start (s).
        duration_s: duration (s); None: to the end of the run.
        speed: speed relative to full speed; 0: down.
        jitter: average relative slowdown by jitter.

    >>> str(Disturbance("disk", 1.0, 20.0, 0.0)), str(Disturbance("gpu0", 2.0, None, 0.5))
    ('disk down from 1.00 s for 20.0 s', 'gpu0 at 50 % of its speed from 2.00 s to the end')
    >>> str(Disturbance("gpu*", 0.0, 10.0, 1.0, 0.05))
    'gpu* with a jitter of 5 % from 0 s for 10.0 s'
    """

    part: str
    at_s: float
    duration_s: float | None
    speed: float
    jitter: float = 0.0

    def __str__(self) -> str:
        how = f"at {percent(self.speed, '.4g')} of its speed" if self.speed > 0 else "down"
        how = f"with a jitter of {percent(self.jitter, '.4g')}" if self.jitter > 0 else how
        until = "to the end" if self.duration_s is None else f"for {format_quantity(self.duration_s, 's')}"
        return f"{self.part} {how} from {format_quantity(self.at_s, 's')} {until}"
