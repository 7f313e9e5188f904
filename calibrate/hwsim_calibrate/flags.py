"""Flags of a doubtful measurement, seen in the samples themselves.

Four of the limits are those that pyperf warns of (its `check` command): a standard deviation of 10 % of the mean, a lowest or
highest sample 50 % off the mean, samples shorter than 1 ms.
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
    "unsteady": "the two lowest rounds are more than 5 % apart",
    "noisy": "the samples of a round scatter by 10 % of their mean or more, in most rounds",
    "outliers": "a sample is 50 % or more off the mean of its round, in most rounds",
    "bimodal": "the samples fall into two groups, 1.5 times apart",
    "shared": "the thread waited for others during the samples: the wall clock ran 5 % longer than its CPU time",
    "switched": "another program was given the CPU in the middle of most samples",
    "stolen": "the hypervisor gave 1 % of the time or more to other machines",
    "faulting": "some samples met new pages of memory and others did not",
}
_APART: Final = 1.5
_PART: Final = 0.2  # part of the samples that makes a group


def flags_of(
    clock: Clock, seconds: Sequence[float], rounds: Sequence[Sequence[Sample]], steal: Sequence[float]
) -> tuple[str, ...]:
    """The words of `FLAGS` that apply.

    Args:
        seconds: the quiet estimate of each round.
        rounds: samples of the rounds of this run.
        steal: part of the time that was stolen, by round.
    """
    samples = [each for taken in rounds for each in taken]
    if not samples:
        return ("few",) if len(seconds) < 3 else ()
    times = [[sample.by(clock) for sample in taken] for taken in rounds]
    flat = [each for taken in times for each in taken]
    lowest = sorted(seconds)[:2]
    applies = {
        "few": len(seconds) < 3,
        "unsteady": len(lowest) == 2 and lowest[1] > 1.05 * lowest[0],
        "noisy": _most([pstdev(taken) >= 0.1 * fmean(taken) for taken in times]),
        "outliers": _most([max(taken) >= 1.5 * fmean(taken) or min(taken) <= 0.5 * fmean(taken) for taken in times]),
        "bimodal": bimodal(flat),
        "shared": clock == "cpu" and median(each.wall / max(each.cpu, 1e-12) for each in samples) > 1.05,
        "switched": _most([each.switches > 0 for each in samples]),
        "stolen": bool(steal) and median(steal) >= 0.01,
        "faulting": min(each.faults for each in samples) < 1.0 and max(each.faults for each in samples) >= 8.0,
    }
    return tuple(name for name in FLAGS if applies[name])


def bimodal(times: Sequence[float]) -> bool:
    """Whether times fall into two groups with nothing between them.

    >>> bimodal([1.0, 1.1, 1.0, 2.0, 2.1, 1.0]), bimodal([1.0, 1.1, 1.2, 1.3, 1.4, 9.0])
    (True, False)
    """
    if len(times) < 5:
        return False
    ordered = sorted(math.log(max(time_, 1e-12)) for time_ in times)
    gap, at = max((high - low, number) for number, (low, high) in enumerate(pairwise(ordered), 1))
    return gap >= math.log(_APART) and min(at, len(times) - at) >= _PART * len(times)


def _most(verdicts: Sequence[bool]) -> bool:
    return 2 * sum(verdicts) > len(verdicts)
