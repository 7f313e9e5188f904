"""What of the exchanges between copies hides behind kernels: one law, for the estimate and for the ops of a step.

Of each exchange a part is exposed (`Framework.gradients`): its devices wait, or lose as much in the kernels beside it, whose
multiprocessors and memory it takes.  That part is fitted to whole steps, so nothing is taken from those kernels a second time.
The rest hides where there is something to hide behind, and no further:

    gradients   in n equal buckets, each sent once it is computed: behind the last backward pass but its first 1/n
                the last bucket hides behind nothing: the exposed part is 1/n at least
    weights     of the next step, where copies share the optimizer: behind its first forward pass
                of a stage in v chunks, of p stages, the last backward pass of one chunk ends p turns before that of the
                next, and so their first forward passes: all of that counts as well
    sharded     weights gathered piece by piece, gradients scattered so: behind all that is computed, but for the first
                piece that is gathered and the last one that is scattered

    exposed time = exposed part x exchange + max(rest of it - what it hides behind, 0)

**Source**: buckets: Li et al., "PyTorch Distributed", arXiv:2006.15704, 2020, section 3.2.3.
**Range**: buckets of equal sizes; weights that are gathered in the order in which they are needed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hwsim.models.layer import Exchange
from hwsim.models.plan import Laid

MOST: Final = 16  # buckets of a backward pass, where nobody says how many


def pieces(laid: Laid, stage: int, said: int | None = None) -> int:
    """Buckets of one chunk of a stage.  said: how many, at most one for each layer."""
    return min(max(1, laid.layers_of(stage) // laid.plan.chunks), said or MOST)


def in_buckets(gradients: Exchange, count: int) -> Exchange:
    """The exchange with the part exposed that so many buckets leave."""
    least = 1.0 / count
    return gradients if gradients.exposed >= least else replace(gradients, exposed=least)


def window(laid: Laid, one: float, buckets: int = 0) -> float:
    """Seconds that all chunks of a stage give to hide in, where one pass of all of them takes `one`.

    buckets: of each chunk, of which the first is to be computed before anything is sent.
    """
    chunks = laid.plan.chunks
    last = 1.0 - 1.0 / buckets if buckets else 1.0
    return one / chunks * ((chunks - 1) * laid.plan.pp + last)


def left(hidden: float, behind: float) -> float:
    """Seconds of what should hide that find nothing to hide behind."""
    return max(0.0, hidden - behind)
