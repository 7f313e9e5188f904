"""Overlap of exchanges between replicas with kernels: one model for estimates and for the ops of a simulated step.

A share of each exchange is exposed (`Framework.gradients`): GPUs wait, or concurrent kernels lose that time, because the exchange
uses their multiprocessors and memory. The share is fitted to whole steps, so concurrent kernels are not slowed a second time.
The rest overlaps as long as kernels are available:

    gradients   n equal buckets, each sent as soon as it is computed, overlap the last backward pass except its first 1/n. The
                last bucket overlaps nothing, so at least 1/n is exposed.
    weights     of the next step, if replicas share the optimizer, overlap its first forward pass. With p stages of v virtual
                stages each, the last backward passes of two virtual stages end p passes apart, and so do their first forward
                passes; this time is available, too.
    sharded     weights gathered in pieces and gradients scattered in pieces overlap all computation, except the first piece
                gathered and the last piece scattered.

    exposed time = exposed share x exchange + max(rest - available time, 0)

**Source**: buckets: Li et al., "PyTorch Distributed", arXiv:2006.15704, 2020, section 3.2.3.
**Range**: buckets of equal size; weights are gathered in the order in which they are needed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hwsim.models.layer import Exchange
from hwsim.models.plan import DerivedPlan

MAX_BUCKETS: Final = 16  # maximum buckets of a backward pass, unless the workload sets them


def pieces(laid: DerivedPlan, stage: int, wanted: int | None = None) -> int:
    """Return the number of buckets of a virtual stage: `wanted`, but at most one per layer."""
    return min(max(1, laid.layers_of(stage) // laid.plan.chunks), wanted or MAX_BUCKETS)


def in_buckets(gradients: Exchange, count: int) -> Exchange:
    """Return the exchange with the exposed share that `count` buckets leave."""
    least = 1.0 / count
    return gradients if gradients.exposed >= least else replace(gradients, exposed=least)


def overlap_seconds(laid: DerivedPlan, passing: float, buckets: int = 0) -> float:
    """Return the time (s) of all virtual stages of a stage that exchanges can overlap.

    Args:
        passing: time of one pass through all virtual stages (s).
        buckets: buckets per virtual stage; nothing is sent before the first one is computed.
    """
    chunks = laid.plan.chunks
    last = 1.0 - 1.0 / buckets if buckets else 1.0
    return passing / chunks * ((chunks - 1) * laid.plan.pp + last)


def exposed_seconds(hidden: float, behind: float) -> float:
    """Return the exposed time (s) of an exchange of `hidden` seconds that can overlap `behind` seconds."""
    return max(0.0, hidden - behind)
