"""Accesses of services to hard disks: each arm serves one access at a time, with a random positioning time.

    access time = fixed + positioning / n^gain,   n: queued accesses per arm when it begins, including itself

The seek covers the distance between two random positions, and the rotation is a random part of a turn; both are drawn for each
access, with the average of `hwsim.devices.hdd`. An arm that picks the nearest of n accesses picks one at random with respect to
the arrival order, because positions are independent of arrival times. Accesses of a sequential stream need no positioning while
no other access intervenes. An array has one queue for all disks, which assumes a perfect balance.

Error: next to a request-level simulation of the drive (shortest positioning time first, random requests at 6 to 143 % of its
FIFO throughput), averages are within 3 %, p95 and p99 within 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from hwsim.demand import AccessTime, Demand
from hwsim.devices.arm import HeadPositioning
from hwsim.devices.contention import ArrayMembers, Mixture, QueuedArm, SequentialStreams
from hwsim.records import dataclass
from hwsim.ticks import FEMTO, femtoseconds

MOST: Final = 1000  # maximum number of accesses of a statement that are drawn individually
_SAME: Final = 1e-9  # relative difference


@dataclass(frozen=True, slots=True)
class ArmAccesses:
    """The accesses of one statement to disk arms.

    Args:
        count: number of accesses, in sequence.
        fixed: time of an access without positioning (fs).
        reach: average positioning time (fs).
        ways: distribution of the positioning time.
        follows: time of a sequential access that follows the previous one directly (fs); -1: it is positioned, too.
        gain: exponent of the queue depth by which positioning becomes shorter.
        queue: number of queued accesses among which each arm chooses.
        arms: number of arms.
    """

    count: int
    fixed: int
    reach: int
    ways: HeadPositioning
    follows: int
    gain: float
    queue: int
    arms: int

    @property
    def first(self) -> int:
        """Time of an uncontended access with average positioning (fs)."""
        return self.fixed + self.reach


def is_arm(access: AccessTime) -> bool:
    """Whether accesses wait for the arm and the rotation of a hard disk, or of one disk of an array."""
    match access:
        case ArrayMembers(member=member):
            return is_arm(member)
        case Mixture(sorts=sorts):
            return any(is_arm(sort) for _, sort in sorts)
        case QueuedArm() | SequentialStreams():
            return access.ways is not None
    return False


def accesses_of(demand: Demand, rates: Mapping[str, float]) -> ArmAccesses | None:
    """Return the accesses of a demand, or None if it uses no arm, several at once, or more than `MOST` accesses."""
    crowd = demand.crowd
    if crowd is None or crowd.depth != 1 or crowd.rest or crowd.times != 1 or demand.holds:
        return None
    access, arms = crowd.each, 1.0
    if isinstance(access, ArrayMembers):
        arms = 1.0 / access.part
        access = access.member
    if isinstance(access, Mixture):
        access = _mean_of(access)
    if not isinstance(access, QueuedArm | SequentialStreams) or access.ways is None or not _is_whole(arms):
        return None
    body, fixed, follows = demand.body(rates), access.fixed, -1.0
    ratio = body / (access.alone if isinstance(access, SequentialStreams) else access.fixed + access.reach)
    if not _is_whole(ratio) or ratio > MOST:
        return None
    count = round(ratio)
    if isinstance(access, SequentialStreams):
        fixed += access.each
        follows = (body - fixed - access.reach) / (count - 1) if count > 1 else -1.0
    return ArmAccesses(
        count=count,
        fixed=femtoseconds(fixed),
        reach=femtoseconds(access.reach),
        ways=access.ways,
        follows=femtoseconds(follows) if follows >= 0 else -1,
        gain=access.gain,
        queue=round(access.queue),
        arms=round(arms),
    )


def _mean_of(mixture: Mixture) -> AccessTime:
    """Return a mixture of accesses as one kind with their average, if they differ only in their times."""
    sorts = [(part, arm) for part, arm in mixture.sorts if isinstance(arm, QueuedArm) and arm.ways is not None]
    if len(sorts) < len(mixture.sorts) or len({(arm.gain, arm.queue) for _, arm in sorts}) != 1:
        return mixture
    first = sorts[0][1]
    fixed = math.fsum(part * arm.fixed for part, arm in sorts) + mixture.turn
    return QueuedArm(fixed, math.fsum(part * arm.reach for part, arm in sorts), first.gain, first.queue, first.ways)


def _is_whole(number: float) -> bool:
    return number >= 1 - _SAME and math.isclose(number, round(number), rel_tol=_SAME)


def positioning_factors(accesses: ArmAccesses) -> list[float]:
    """Return the factor on the positioning time, by the number of accesses queued and in service at all arms."""
    max_depth = accesses.queue * accesses.arms
    return [max(1.0, depth / accesses.arms) ** -accesses.gain for depth in range(max_depth + 1)]


def choice_window(works: Sequence[ArmAccesses]) -> int:
    """Return the number of queued accesses among which the arms choose."""
    return max([accesses.queue * accesses.arms for accesses in works if accesses.gain > 0], default=1)


def positioning_scale(accesses: ArmAccesses, slower: float) -> float:
    """Return the positioning time (fs) per second of `ways`."""
    mean = accesses.ways.mean
    return accesses.reach * slower / mean if mean > 0 else FEMTO * slower
