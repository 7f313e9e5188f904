"""The time of one access while others are in flight at the same device: the curves of `hwsim.demand.Crowd`.

They are the formulas for a single op of each device as functions of the number of accesses in flight, so that one op of depth 64
and 64 ops of depth 1 have the same rate.

The rate of a device with `depth` accesses in flight:

    rate(1) = 1 / one,   rate(depth) -> most,   rate^-p = depth^-p (one^p - most^-p) + most^-p

This soft minimum of Little's law (depth / one) and of the maximum rate is exact at both ends.
Source of its shape: asymptotic bounds of a closed queueing network (Denning and Buzen, ACM Computing Surveys 10(3), 1978).
"""

from __future__ import annotations

import math

from hwsim.demand import AccessTime
from hwsim.devices.arm import HeadPositioning
from hwsim.records import dataclass


def rate_at(depth: float, one_s: float, most: float, sharpness: float) -> float:
    """Return the accesses per second with `depth` of them in flight.

    Args:
        depth: accesses in flight.
        one_s: time of a single access (s).
        most: maximum accesses per second.
        sharpness: sharpness of the knee; infinite: a plain minimum.

    >>> round(rate_at(1, 100e-6, 500e3, 1.5)), round(rate_at(50, 100e-6, 500e3, 1.5)), round(rate_at(1e9, 100e-6, 500e3, 1.5))
    (10000, 315278, 500000)
    """
    if one_s <= 0:
        return most
    if math.isinf(most):
        return depth / one_s
    slowest = max(one_s, 1.0 / most)
    cap = slowest * most  # depth at the corner of a plain minimum
    if cap <= 1.0 or math.isinf(sharpness):
        return min(depth / slowest, most)
    low = min(depth, cap)  # factored out of the sum to avoid overflow at any sharpness
    inner = (low / depth) ** sharpness * (1.0 - cap**-sharpness) + (low / cap) ** sharpness
    return min(most, float(low * inner ** (-1.0 / sharpness) / slowest))


def device_share_at(depth: float, one_s: float, most: float, sharpness: float, own_s: float) -> float:
    """Return the share of an access's time (see `rate_at`) that scales with the device's speed.

    own_s: part of the time of a single access that does so (s).

    The time over the slowdown is approximated by a straight line up to the knee: exact for a single access and at the maximum
    rate, within 12 % in between.

    >>> device_share_at(1, 2e-3, 1e3, 1.5, 1e-3), device_share_at(1, 1e-3, 1e3, 1.5, 0.0), device_share_at(1, 1e-4, 1e6, 1.5, 0.0)
    (0.5, 1.0, 0.0)
    """
    if math.isinf(most):
        return own_s / one_s if one_s > 0 else 1.0
    slower = max(1.1, one_s * most / depth)
    rate, slow_rate = (rate_at(depth, one_s + own_s * (x - 1.0), most / x, sharpness) for x in (1.0, slower))
    return min(1.0, (rate / slow_rate - 1.0) / (slower - 1.0))


@dataclass(frozen=True, slots=True)
class ParallelChips:
    """Chips that work in parallel up to a limit (see `rate_at`).

    Args:
        one: time of a single access (s).
        most: maximum accesses per second.
        sharpness: sharpness of the knee.
        queue: queue depth of the device.
        busy: device time of one access (s).
    """

    one: float
    most: float
    sharpness: float
    queue: float
    busy: float

    def __call__(self, under_way: float) -> tuple[float, float]:
        rate = rate_at(min(under_way, self.queue), self.one, self.most, self.sharpness)
        return 1.0 / rate if rate > 0 else 0.0, self.busy


@dataclass(frozen=True, slots=True)
class QueuedArm:
    """A disk arm with one access at a time, the nearest one in the queue next: positioning takes reach / n^gain.

    Args:
        fixed: time of an access without positioning (s).
        reach: positioning time at queue depth 1 (s).
        gain: exponent of the queue depth.
        queue: maximum queue depth.
        ways: distribution of the positioning times; None: unknown.
    """

    fixed: float
    reach: float
    gain: float
    queue: float
    ways: HeadPositioning | None = None

    def __call__(self, under_way: float) -> tuple[float, float]:
        seconds = self.fixed + self.reach / min(under_way, self.queue) ** self.gain
        return seconds, seconds


@dataclass(frozen=True, slots=True)
class SequentialStreams:
    """A disk arm that reads sequentially, `together` accesses at a time, and serves other streams in between.

    The accesses of a single stream are contiguous. With several streams, the arm is elsewhere when a stream continues, and
    returns for every `together` accesses (deceptive idleness: Iyer and Druschel, "Anticipatory scheduling", SOSP 2001).

    Args:
        alone: time of one access of a single stream, with the first positioning spread over all accesses (s).
        each: transfer time of one access after positioning (s).
        fixed: fixed time of a positioning (s).
        reach: positioning time at queue depth 1 (s).
        gain: exponent of the queue depth.
        queue: maximum queue depth.
        together: accesses of a stream in flight.
        ways: distribution of the positioning times; None: unknown.
    """

    alone: float
    each: float
    fixed: float
    reach: float
    gain: float
    queue: float
    together: int
    ways: HeadPositioning | None = None

    def __call__(self, under_way: float) -> tuple[float, float]:
        streams = under_way / self.together
        way = self.fixed + self.reach / min(max(streams, 1.0), self.queue) ** self.gain
        seconds = self.each + way / self.together if streams > 1 else self.alone
        return seconds, seconds


@dataclass(frozen=True, slots=True)
class ArrayMembers:
    """A set of identical devices; an access in flight is at any given device with probability `part`."""

    member: AccessTime
    part: float

    def __call__(self, under_way: float) -> tuple[float, float]:
        member_depth = under_way * self.part
        seconds, busy = self.member(max(1.0, member_depth))
        return seconds * max(1.0, 1.0 / member_depth), busy


@dataclass(frozen=True, slots=True)
class Mixture:
    """Interleaved accesses of several kinds.

    Args:
        sorts: (share of the accesses, curve) of each kind.
        turn: time lost between kinds, for each access (s).
    """

    sorts: tuple[tuple[float, AccessTime], ...]
    turn: float = 0.0

    def __call__(self, under_way: float) -> tuple[float, float]:
        rows = [(part, *curve(under_way)) for part, curve in self.sorts]
        seconds, busy = (math.fsum(row[0] * row[column] for row in rows) for column in (1, 2))
        return seconds + self.turn, busy + self.turn
