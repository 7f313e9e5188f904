"""Exchanges between replicas that hide behind kernels: one law, for the estimate and for the ops of a step.

A part of each exchange is exposed (`Framework.gradients`): its devices wait, or lose as much in the concurrent kernels, whose
multiprocessors and memory it takes. That part is fitted to whole steps, so nothing is taken from those kernels a second time.
The rest hides as long as there is something to hide behind:

    gradients   n equal buckets, each sent once it is computed, hide behind the last backward pass but its first 1/n. The last
                bucket hides behind nothing: at least 1/n is exposed.
    weights     of the next step, if the replicas share the optimizer, hide behind its first forward pass. In a stage with v
                virtual stages, of p stages, the last backward passes of two virtual stages end p passes apart, and so do
                their first forward passes: that time counts, too.
    sharded     weights gathered in pieces and gradients scattered in pieces hide behind all that is computed, but for the
                first piece that is gathered and the last piece that is scattered.

    exposed time = exposed part x exchange + max(rest of it - what it hides behind, 0)

**Source**: buckets: Li et al., "PyTorch Distributed", arXiv:2006.15704, 2020, section 3.2.3.
**Range**: buckets of equal sizes; weights that are gathered in the order in which they are needed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hwsim.models.layer import Exchange
from hwsim.models.plan import Laid

MOST: Final = 16  # buckets of a backward pass, unless the file says


def pieces(laid: Laid, stage: int, wanted: int | None = None) -> int:
    """Buckets of one virtual stage: `wanted` of them, but at most one for each layer."""
    return min(max(1, laid.layers_of(stage) // laid.plan.chunks), wanted or MOST)


def in_buckets(gradients: Exchange, count: int) -> Exchange:
    """The exchange with the part exposed that `count` buckets leave."""
    least = 1.0 / count
    return gradients if gradients.exposed >= least else replace(gradients, exposed=least)


def window(laid: Laid, passing: float, buckets: int = 0) -> float:
    """Seconds that all virtual stages of a stage give to hide in.

    Args:
        passing: seconds of one pass through all of them.
        buckets: buckets of each virtual stage; nothing is sent before the first is computed.
    """
    chunks = laid.plan.chunks
    last = 1.0 - 1.0 / buckets if buckets else 1.0
    return passing / chunks * ((chunks - 1) * laid.plan.pp + last)


def left(hidden: float, behind: float) -> float:
    """Seconds that find nothing to hide behind."""
    return max(0.0, hidden - behind)
