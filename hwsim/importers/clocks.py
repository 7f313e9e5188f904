"""Clocks of ranks: ranks of one host share a clock; others are shifted until their collectives end together.

A collective ends on all its ranks within microseconds, because none has its result before the last has sent. The shift of a
host is the median over the collectives that it has in common with the first rank's host.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median, quantiles
from typing import Final

import numpy as np

from hwsim.formats import format_quantity
from hwsim.importers.recording import Rank, What
from hwsim.ticks import FEMTO

TOGETHER: Final = frozenset({"allreduce", "allgather", "reduce-scatter", "alltoall", "sendrecv", "barrier"})
SAME: Final = FEMTO // 1000  # fs: clocks of one host whose name is not known differ by less
UNSURE: Final = FEMTO // 1000  # fs between quartiles from which the collectives are not the same ones
FEW: Final = 2  # values that have no quartiles of their own

Meeting = tuple[str, int, tuple[int, ...], str, int]  # what must be equal of one collective on two ranks


def offsets(ranks: Sequence[Rank]) -> tuple[list[int], list[str]]:
    """fs to add to the clock of each rank, and what was found, in words."""
    if len(ranks) < FEW:
        return [0] * len(ranks), []
    first, ends = ranks[0], [_ends(rank) for rank in ranks]
    hosts: dict[str, list[int]] = defaultdict(list)
    for at, rank in enumerate(ranks):
        hosts[rank.host or f"rank {rank.number}"].append(at)
    shifts, notes = [0] * len(ranks), []
    for name, members in hosts.items():
        if 0 in members:
            continue
        late = [each for at in members for each in _differences(first.number, ends[0], ranks[at].number, ends[at])]
        is_named = bool(first.host and ranks[members[0]].host)
        shift, words = _shift(late, is_named=is_named)
        if words:
            notes.append(f"the clock of {name} {words}")
        for at in members:
            shifts[at] = shift
    return shifts, notes


def _shift(late: list[int], *, is_named: bool) -> tuple[int, str]:
    """fs to add, and words for it; "" if there is nothing to say."""
    if not late:
        return 0, "is taken as it is: it has no collective in common with the first rank" if is_named else ""
    middle = round(median(late))
    low, _, high = quantiles(late, n=4) if len(late) > FEW else (min(late), middle, max(late))
    if not is_named and abs(middle) < SAME:
        return 0, ""
    if high - low > UNSURE:
        spread = format_quantity((high - low) / FEMTO, "s")
        return 0, f"is taken as it is: the ends of its {len(late)} collectives, against the first rank's, differ by {spread}"
    sign = "later" if middle > 0 else "earlier"
    return middle, f"is set {format_quantity(abs(middle) / FEMTO, 's')} {sign}, by the ends of {len(late)} collectives"


def _ends(rank: Rank) -> dict[Meeting, list[int]]:
    """Ends of the collectives of a rank, in order, by what they are."""
    slices = rank.slices
    meetings: dict[Meeting, list[int]] = defaultdict(list)
    which = np.array([fact.collective is not None for fact in rank.facts] or [False])
    chosen = (slices.what == What.KERNEL) & (slices.facts >= 0)
    chosen[chosen] = which[slices.facts[chosen]]
    ends = slices.end
    for at in np.flatnonzero(chosen).tolist():
        collective = rank.facts[slices.facts[at]].collective
        if collective is not None and collective.name in TOGETHER:
            stream = rank.lanes[slices.lane[at]].number if not collective.ranks else 0
            meetings[collective.name, collective.elements_in, collective.ranks, collective.group, stream].append(int(ends[at]))
    return meetings


def _differences(first: int, ends: dict[Meeting, list[int]], second: int, others: dict[Meeting, list[int]]) -> list[int]:
    """fs that the first rank's collectives end later than the second's; only those that both have as often."""
    late = []
    for meeting, times in ends.items():
        ranks, theirs = meeting[2], others.get(meeting, [])
        if len(theirs) == len(times) and (not ranks or {first, second} <= set(ranks)):
            late += [mine - their for mine, their in zip(times, theirs, strict=True)]
    return late
