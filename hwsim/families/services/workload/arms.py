"""Accesses of services to hard disks: one at a time at each arm, each with a way of its own.

    an access takes fixed + way / n^gain,   n: those that wait when it begins, itself among them, for each arm

The seek is over a distance between two random places, the turn is any part of a whole one, both drawn for each access; the
mean is what `hwsim.devices.hdd` says of one. An arm that takes the nearest of n takes any of them, as good as at random: places
know nothing of when requests came. Next to the drive request by request (shortest positioning first, random requests at 6 to
143 % of what it serves in order of arrival) means are within 3 %, p95 and p99 within 5 %.

Accesses of a stream follow each other while nothing comes between. Disks of an array: one line for all, as their balance is
taken as perfect.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from hwsim.demand import Demand, Each
from hwsim.devices.arm import Reach
from hwsim.devices.crowding import Arm, Members, Mixture, Streams
from hwsim.records import dataclass
from hwsim.ticks import FEMTO, femtoseconds

MOST: Final = 1000  # accesses of a work; a longer one takes their mean
_SAME: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Accesses:
    """Accesses to an arm that one work asks for.

    Args:
        count: accesses, one after another.
        fixed, reach: fs of one, without its way, and of a way in the mean.
        ways: ways are spread like these.
        follows: fs of an access that follows the one before, where none came between; -1: it has a way, too.
        gain: the way to the best of n takes n^-gain.
        queue: each arm chooses among the first of the line, at most this number.
        arms: that serve them.
    """

    count: int
    fixed: int
    reach: int
    ways: Reach
    follows: int
    gain: float
    queue: int
    arms: int

    @property
    def first(self) -> int:
        """Fs of an access with a mean way, alone."""
        return self.fixed + self.reach


def is_arm(access: Each) -> bool:
    """Whether accesses wait for an arm and a turn of a hard disk, or of one among several."""
    match access:
        case Members(member=member):
            return is_arm(member)
        case Mixture(sorts=sorts):
            return any(is_arm(sort) for _, sort in sorts)
        case Arm() | Streams():
            return access.ways is not None
    return False


def accesses_of(demand: Demand, rates: Mapping[str, float]) -> Accesses | None:
    """The accesses of a work; None where it asks nothing of an arm, or more than is drawn one by one."""
    crowd = demand.crowd
    if crowd is None or crowd.depth != 1 or crowd.rest or crowd.times != 1 or demand.holds:
        return None
    access, arms = crowd.each, 1.0
    if isinstance(access, Members):
        arms = 1.0 / access.part
        access = access.member
    if isinstance(access, Mixture):
        access = _mean_of(access)
    if not isinstance(access, Arm | Streams) or access.ways is None or not _is_whole(arms):
        return None
    body, fixed, follows = demand.body(rates), access.fixed, -1.0
    many = body / (access.alone if isinstance(access, Streams) else access.fixed + access.reach)
    if not _is_whole(many) or many > MOST:
        return None
    count = round(many)
    if isinstance(access, Streams):
        fixed += access.each
        follows = (body - fixed - access.reach) / (count - 1) if count > 1 else -1.0
    return Accesses(
        count=count,
        fixed=femtoseconds(fixed),
        reach=femtoseconds(access.reach),
        ways=access.ways,
        follows=femtoseconds(follows) if follows >= 0 else -1,
        gain=access.gain,
        queue=round(access.queue),
        arms=round(arms),
    )


def _mean_of(mixture: Mixture) -> Each:
    """Accesses of several sorts as one sort with their mean."""
    sorts = [(part, arm) for part, arm in mixture.sorts if isinstance(arm, Arm) and arm.ways is not None]
    if len(sorts) < len(mixture.sorts) or len({(arm.gain, arm.queue) for _, arm in sorts}) != 1:
        return mixture
    first = sorts[0][1]
    fixed = math.fsum(part * arm.fixed for part, arm in sorts) + mixture.turn
    return Arm(fixed, math.fsum(part * arm.reach for part, arm in sorts), first.gain, first.queue, first.ways)


def _is_whole(number: float) -> bool:
    return number >= 1 - _SAME and math.isclose(number, round(number), rel_tol=_SAME)


def scales(accesses: Accesses) -> list[float]:
    """The part of its way that an access takes, by those that wait and are served at all arms."""
    most = accesses.queue * accesses.arms
    return [max(1.0, there / accesses.arms) ** -accesses.gain for there in range(most + 1)]


def seen(works: Sequence[Accesses]) -> int:
    """Length of the part of the line in which arms that serve these works choose."""
    return max([each.queue * each.arms for each in works if each.gain > 0], default=1)


def stretch(accesses: Accesses, slower: float) -> float:
    """Fs of a way for each second of `ways`."""
    mean = accesses.ways.mean
    return accesses.reach * slower / mean if mean > 0 else FEMTO * slower
