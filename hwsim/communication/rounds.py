"""Rounds: the link load of a plan without its chunks, with equal steps merged, as shares of the bytes.

Rounds suffice to time an algorithm. A ring of ten thousand ranks has two rounds of ten thousand pairs instead of two hundred
million sends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hwsim.communication.pairs import Pair
from hwsim.communication.plan import CollectivePlan
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class Round:
    """`times` equal consecutive steps, in each of which these pairs send at once.

    Args:
        name: name for derivations.
        pairs: pairs with their share of the bytes per step, sorted.
        reduce: the receivers add the data to their own.
        fill: additional steps until the last chunk has passed a pipeline.
        hops: additional latencies of hops that forward data without waiting for a whole chunk.
    """

    name: str
    pairs: Sequence[Pair]
    times: int = 1
    reduce: bool = False
    fill: int = 0
    hops: int = 0

    @property
    def steps(self) -> int:
        """Number of steps, including those that fill the pipeline."""
        return self.times + self.fill


def rounds_of(plan: CollectivePlan, weights: Sequence[float] = (), name: str = "") -> tuple[Round, ...]:
    """Return the rounds of a plan; consecutive equal steps form one round."""
    shares = plan.sizes(1.0, weights)
    rounds: list[Round] = []
    for step in plan.by_step():
        loads: dict[tuple[int, int], float] = {}
        for send in step:
            carried = math.fsum(shares[send.chunk : send.chunk + send.chunks])
            loads[send.source, send.target] = loads.get((send.source, send.target), 0.0) + carried
        reduce = any(send.reduce for send in step)
        pairs = tuple((source, target, share) for (source, target), share in sorted(loads.items()))
        last = rounds[-1] if rounds else None
        if last is not None and last.reduce == reduce and _are_equal(last.pairs, pairs):
            rounds[-1] = Round(last.name, last.pairs, last.times + 1, reduce)
        else:
            rounds.append(Round(name or ("reduce" if reduce else "send"), pairs, 1, reduce))
    return tuple(rounds)


def _are_equal(first: Sequence[Pair], second: Sequence[Pair]) -> bool:
    return len(first) == len(second) and all(
        a[:2] == b[:2] and math.isclose(a[2], b[2], rel_tol=1e-12, abs_tol=0.0) for a, b in zip(first, second, strict=True)
    )
