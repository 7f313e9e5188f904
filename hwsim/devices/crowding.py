"""The time of one access while others are under way at the same device: the curves of `hwsim.demand.Crowd`.

They are the formulas by which each device times a single op of that depth, as functions of the number under way, so that
one op of depth 64 and 64 ops of depth 1 come to the same rate.

The rate of a device that is asked for `depth` things at once:

    rate(1) = 1 / one,   rate(depth) -> most,   rate^-p = depth^-p (one^p - most^-p) + most^-p

a soft minimum of Little's law (depth / one) and of what the device can do, which is exact at both ends.
Source of its shape: asymptotic bounds of a closed queueing network (Denning and Buzen, ACM Computing Surveys 10(3), 1978).
"""

from __future__ import annotations

import math

from hwsim.demand import Each
from hwsim.devices.arm import Reach
from hwsim.records import dataclass


def rate_at(depth: float, one_s: float, most: float, sharpness: float) -> float:
    """Accesses a second with `depth` of them under way.

    Args:
        one: seconds of one access alone.
        most: accesses a second that are never exceeded.
        sharpness: sharpness of the knee; infinite for a plain minimum.

    >>> round(rate_at(1, 100e-6, 500e3, 1.5)), round(rate_at(50, 100e-6, 500e3, 1.5)), round(rate_at(1e9, 100e-6, 500e3, 1.5))
    (10000, 315278, 500000)
    """
    if one_s <= 0:
        return most
    if math.isinf(most):
        return depth / one_s
    slowest = max(one_s, 1.0 / most)
    cap = slowest * most  # the depth at which a plain minimum would turn
    if cap <= 1.0 or math.isinf(sharpness):
        return min(depth / slowest, most)
    low = min(depth, cap)  # taken out of the sum: no overflow whatever the sharpness
    inner = (low / depth) ** sharpness * (1.0 - cap**-sharpness) + (low / cap) ** sharpness
    return min(most, float(low * inner ** (-1.0 / sharpness) / slowest))


def moving_at(depth: float, one_s: float, most: float, sharpness: float, own_s: float) -> float:
    """Part of the time of an access (see `rate_at`) that goes at the device's speed, where of one alone `own_s` do.

    The time over the slowness as a straight line, from where nothing is slow to the knee: exact alone and at the most,
    within 12 % between.

    >>> moving_at(1, 2e-3, 1e3, 1.5, 1e-3), moving_at(1, 1e-3, 1e3, 1.5, 0.0), moving_at(1, 1e-4, 1e6, 1.5, 0.0)
    (0.5, 1.0, 0.0)
    """
    if math.isinf(most):
        return own_s / one_s if one_s > 0 else 1.0
    slower = max(1.1, one_s * most / depth)
    rate, then = (rate_at(depth, one_s + own_s * (x - 1.0), most / x, sharpness) for x in (1.0, slower))
    return min(1.0, (rate / then - 1.0) / (slower - 1.0))


@dataclass(frozen=True, slots=True)
class Knee:
    """Chips that work side by side up to a limit: see `rate_at`. busy: seconds of the device for one access."""

    one: float
    most: float
    sharpness: float
    queue: float
    busy: float

    def __call__(self, under_way: float) -> tuple[float, float]:
        rate = rate_at(min(under_way, self.queue), self.one, self.most, self.sharpness)
        return 1.0 / rate if rate > 0 else 0.0, self.busy


@dataclass(frozen=True, slots=True)
class Arm:
    """One access at a time, the nearest of those in the queue next: the way there takes reach / n^gain.

    ways: how ways differ from access to access; None: that is not known.
    """

    fixed: float
    reach: float
    gain: float
    queue: float
    ways: Reach | None = None

    def __call__(self, under_way: float) -> tuple[float, float]:
        seconds = self.fixed + self.reach / min(under_way, self.queue) ** self.gain
        return seconds, seconds


@dataclass(frozen=True, slots=True)
class Streams:
    """An arm that reads in sequence, `together` accesses at a time, and goes to another stream in between if there is one.

    With one stream its accesses follow each other. With more the arm is elsewhere when a stream asks on: it has to come back
    for every `together` of them (deceptive idleness: Iyer and Druschel, "Anticipatory scheduling", SOSP 2001).

    Args:
        alone: seconds of one access with no other stream there, a first way there spread over all.
        each: seconds of one access once the arm is there.
        ways: how ways differ; None: that is not known.
    """

    alone: float
    each: float
    fixed: float
    reach: float
    gain: float
    queue: float
    together: int
    ways: Reach | None = None

    def __call__(self, under_way: float) -> tuple[float, float]:
        streams = under_way / self.together
        way = self.fixed + self.reach / min(max(streams, 1.0), self.queue) ** self.gain
        seconds = self.each + way / self.together if streams > 1 else self.alone
        return seconds, seconds


@dataclass(frozen=True, slots=True)
class Members:
    """Several devices alike; `part` of each access under way is at one of them."""

    member: Each
    part: float

    def __call__(self, under_way: float) -> tuple[float, float]:
        there = under_way * self.part
        seconds, busy = self.member(max(1.0, there))
        return seconds * max(1.0, 1.0 / there), busy


@dataclass(frozen=True, slots=True)
class Mixture:
    """Accesses of several sorts in turns: (part of them, each); turn: seconds lost between sorts, for each access."""

    sorts: tuple[tuple[float, Each], ...]
    turn: float = 0.0

    def __call__(self, under_way: float) -> tuple[float, float]:
        rows = [(part, *each(under_way)) for part, each in self.sorts]
        seconds, busy = (math.fsum(row[0] * row[column] for row in rows) for column in (1, 2))
        return seconds + self.turn, busy + self.turn
