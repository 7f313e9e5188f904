"""Intervals of estimates: of a time in closed form, from the shares of its kinds of work."""

from __future__ import annotations

import math
from collections.abc import Mapping

from hwsim.demand import Case
from hwsim.devices import Gpu
from hwsim.devices.gpu_doubts import ORDER
from hwsim.models.cluster import Cluster
from hwsim.models.doubts import doubts, of_steps
from hwsim.models.step import Step
from hwsim.results.doubts import MANY, Weight, Weights
from hwsim.results.interval import Interval, interval


def of_step(step: Step, cluster: Cluster) -> Interval:
    """The interval of a training step."""
    plan = step.laid.plan
    regime = of_steps(plan.dtype, plan.tp * plan.pp, transformer=step.laid.unit == "tokens")
    return of_shares(step.shares, cluster.gpu, plan.dtype, step.seconds, regime, links=cluster.by_library)


def of_shares(
    shares: Mapping[str, float],
    gpu: Gpu,
    dtype: str,
    seconds: float,
    regime: str = "",
    case: Case = "known",
    links: Case | None = None,
) -> Interval:
    """The interval of a time whose kinds of work take these seconds; the rest, a bubble, is as unsure as they are.

    Args:
        regime: that errors that were measured of such times as a whole. case: no part of it is known better than that.
        links: how well the library is known that moves exchanges over PCIe.
    """
    errors = [each._replace(case=max(each.case, case, key=ORDER.index)) for each in doubts(shares, gpu, dtype, links)]
    covered = math.fsum(doubt.seconds for doubt in errors)
    times = seconds / covered if covered > 0 else 0.0
    weights = tuple(Weight(doubt._replace(seconds=times * doubt.seconds), MANY) for doubt in errors)
    return interval(Weights(weights, 0.0 if weights else seconds, seconds), whole=regime)
