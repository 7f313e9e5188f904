"""Flags of unreliable cases, derived from their samples.

The limits of `noisy` and `outliers` are the limits of `pyperf check`: a standard deviation of 10 % of the mean, and a minimum or
maximum that differs from the mean by 50 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median, pstdev
from typing import Final

from hwsim_calibrate.clocks import Sample
from hwsim_calibrate.store import Clock

FLAGS: Final = {
    "few": "fewer than three rounds",
    "unsteady": "the two fastest rounds differ by more than 5 %",
    "noisy": "in most rounds, the standard deviation of the samples is 10 % of the mean or more",
    "outliers": "in most rounds, a sample differs from the mean of its round by 50 % or more",
    "bimodal": "the samples form two groups that differ by a factor of 1.5 or more",
    "shared": "the thread waited for a CPU: wall time exceeds CPU time by more than 5 %",
    "switched": "another program preempted the thread during most samples",
    "stolen": "the hypervisor gave 1 % or more of the CPU time to other virtual machines",
    "faulting": "only some of the samples caused page faults",
}
_MIN_GAP: Final = 1.5  # factor between two groups
_MIN_SHARE: Final = 0.2  # of the samples in the smaller group


def flags_of(
    clock: Clock, seconds: Sequence[float], rounds: Sequence[Sequence[Sample]], steal: Sequence[float]
) -> tuple[str, ...]:
    """Return the flags of a case.

    Args:
        clock: the clock that counts.
        seconds: the undisturbed time of each round (s).
        rounds: samples of the rounds of this run.
        steal: share of stolen CPU time in each round.
    """
    samples = [sample for taken in rounds for sample in taken]
    if not samples:
        return ("few",) if len(seconds) < 3 else ()
    times = [[sample.by(clock) for sample in taken] for taken in rounds]
    flat = [time for taken in times for time in taken]
    lowest = sorted(seconds)[:2]
    applies = {
        "few": len(seconds) < 3,
        "unsteady": len(lowest) == 2 and lowest[1] > 1.05 * lowest[0],
        "noisy": _most([pstdev(taken) >= 0.1 * fmean(taken) for taken in times]),
        "outliers": _most([max(taken) >= 1.5 * fmean(taken) or min(taken) <= 0.5 * fmean(taken) for taken in times]),
        "bimodal": bimodal(flat),
        "shared": clock == "cpu" and median(sample.wall / max(sample.cpu, 1e-12) for sample in samples) > 1.05,
        "switched": _most([sample.switches > 0 for sample in samples]),
        "stolen": bool(steal) and median(steal) >= 0.01,
        "faulting": min(sample.faults for sample in samples) < 1.0 and max(sample.faults for sample in samples) >= 8.0,
    }
    return tuple(name for name in FLAGS if applies[name])


def bimodal(times: Sequence[float]) -> bool:
    """Return whether the times form two groups with a gap between them.

    >>> bimodal([1.0, 1.1, 1.0, 2.0, 2.1, 1.0]), bimodal([1.0, 1.1, 1.2, 1.3, 1.4, 9.0])
    (True, False)
    """
    if len(times) < 5:
        return False
    ordered = sorted(math.log(max(time, 1e-12)) for time in times)
    gap, index = max((high - low, index) for index, (low, high) in enumerate(pairwise(ordered), 1))
    return gap >= math.log(_MIN_GAP) and min(index, len(times) - index) >= _MIN_SHARE * len(times)


def _most(verdicts: Sequence[bool]) -> bool:
    return 2 * sum(verdicts) > len(verdicts)
