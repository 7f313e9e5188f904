"""Execution of plans on integers, to verify the chunks that each rank ends with.

Each rank's contribution is a separate digit of a large integer. So a sum shows that every rank is included, and that none is
included twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hwsim.communication.plan import SUMS, CollectivePlan

_DIGIT: Final = 16  # bits of the count of a rank's contributions
Buffers = list[dict[int, int]]  # chunk -> value, for each participant


class WrongCollectivePlan(ValueError):
    """A plan sends missing data, or does not complete its operation."""


def execute(plan: CollectivePlan, start: Sequence[Mapping[int, int]]) -> Buffers:
    """Return the chunks, with their values, that every participant has at the end.

    Raises:
        WrongPlan: a send of a chunk that its source does not have, a send to itself or to no participant, or two sends that
            overwrite one chunk.
    """
    parties = plan.ranks + plan.helpers
    buffers: Buffers = [dict(chunks) for chunks in start] + [{} for _ in range(parties - len(start))]
    for number, step in enumerate(plan.by_step()):
        moved: list[tuple[int, int, int, bool]] = []
        for send in step:
            if not (0 <= send.source < parties and 0 <= send.target < parties) or send.source == send.target:
                raise WrongCollectivePlan(f"step {number}: {send.source} cannot send to {send.target}")
            if send.chunks < 1 or send.chunk < 0 or send.chunk + send.chunks > plan.chunks:
                raise WrongCollectivePlan(
                    f"step {number}: no chunks {send.chunk} to {send.chunk + send.chunks - 1} of {plan.chunks}"
                )
            for chunk in range(send.chunk, send.chunk + send.chunks):
                if chunk not in buffers[send.source]:
                    raise WrongCollectivePlan(f"step {number}: rank {send.source} does not have chunk {chunk}")
                moved.append((send.target, chunk, buffers[send.source][chunk], send.reduce))
        _apply(plan, number, buffers, moved)
    return buffers


def _apply(plan: CollectivePlan, number: int, buffers: Buffers, moved: Sequence[tuple[int, int, int, bool]]) -> None:
    """Apply the chunks of one step: first those that overwrite, then those that are added."""
    kept: set[tuple[int, int]] = set()
    for target, chunk, value, reduce in moved:
        if not reduce:
            if (target, chunk) in kept:
                raise WrongCollectivePlan(f"step {number}: two sends overwrite chunk {chunk} of rank {target}")
            kept.add((target, chunk))
            buffers[target][chunk] = value
    for target, chunk, value, reduce in moved:
        if reduce and (target, chunk) in kept:
            raise WrongCollectivePlan(
                f"step {number}: chunk {chunk} of rank {target} is overwritten and reduced in the same step"
            )
        if reduce:
            mine = buffers[target].get(chunk, 0)
            buffers[target][chunk] = mine | value if plan.operation == "barrier" else mine + value


def initial_buffers(plan: CollectivePlan) -> Buffers:
    """Return the chunks that the ranks have before the collective.

    A chunk to be summed has the rank's digit; another chunk has a value that only its owner knows.
    """
    n, chunks = plan.ranks, range(plan.chunks)
    match plan.operation:
        case "all-reduce" | "reduce-scatter" | "reduce" | "barrier":
            return [dict.fromkeys(chunks, 1 << _DIGIT * rank) for rank in range(n)]
        case "all-gather" | "gather" | "all-to-all":
            return [{chunk: chunk + 1 for chunk in plan.part(rank)} for rank in range(n)]
        case "broadcast" | "scatter" | "send":
            return [{chunk: chunk + 1 for chunk in chunks} if rank == 0 else {} for rank in range(n)]


def expected_buffers(plan: CollectivePlan) -> Buffers:
    """Return the chunks that each rank must have at the end; it may have others, too."""
    n, all_chunks = plan.ranks, range(plan.chunks)
    total = sum(1 << (_DIGIT * rank) for rank in range(n))  # integers
    value = {chunk: total if plan.operation in SUMS else chunk + 1 for chunk in all_chunks}
    wanted: list[Sequence[int]]
    match plan.operation:
        case "all-reduce" | "all-gather" | "broadcast" | "barrier":
            wanted = [all_chunks] * n
        case "reduce-scatter" | "scatter":
            wanted = [plan.part(rank) for rank in range(n)]
        case "reduce" | "gather":
            wanted = [all_chunks if rank == 0 else () for rank in range(n)]
        case "all-to-all":
            wanted = [range(rank, plan.chunks, n) for rank in range(n)]
        case "send":
            wanted = [all_chunks if rank == n - 1 else () for rank in range(n)]
    return [{chunk: value[chunk] for chunk in chunks} for chunks in wanted]


def prove(plan: CollectivePlan) -> None:
    """Raise WrongPlan, with the first wrong rank and chunk, unless every rank ends with the result of the operation."""
    ended = execute(plan, initial_buffers(plan))
    for rank, wanted in enumerate(expected_buffers(plan)):
        for chunk, value in wanted.items():
            if ended[rank].get(chunk) != value:
                raise WrongCollectivePlan(f"rank {rank} ends with {_describe(plan, ended[rank].get(chunk))} in chunk {chunk}")


def _describe(plan: CollectivePlan, value: int | None) -> str:
    """Return a wrong value as text."""
    if value is None:
        return "nothing"
    if plan.operation not in SUMS:
        return f"the content of chunk {value - 1}"
    counts = [(value >> (_DIGIT * rank)) & ((1 << _DIGIT) - 1) for rank in range(plan.ranks)]
    missing = [str(rank) for rank, count in enumerate(counts) if count == 0]
    twice = [str(rank) for rank, count in enumerate(counts) if count > 1]
    faults = [f"ranks {', '.join(missing)} missing"] * bool(missing) + [f"ranks {', '.join(twice)} more than once"] * bool(twice)
    return "a sum with " + " and ".join(faults)
