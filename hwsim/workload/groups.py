"""Rank groups of a workload: the process groups in which collectives run.

    groups: {tp: {of: gpu*, size: 8}, dp: {of: gpu*, stride: 8}}

Each group consists of `size` members of the natural order, `stride` positions apart; every member belongs to exactly one group.
`size: 8` groups eight neighbours; `stride: 8` groups every eighth member.
Source: the process groups of tensor, pipeline and data parallelism (Narayanan et al., "Efficient large-scale language
model training on GPU clusters using Megatron-LM", SC 2021).
"""

from __future__ import annotations

from collections.abc import Sequence

from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.spec.mistakes import HintedError


class CannotGroup(HintedError):
    """An error for a number of members that cannot be divided into whole groups; `hint` contains the condition."""


@dataclass(frozen=True, slots=True)
class RankGroups:
    """A set of equal groups that partition the members."""

    of: tuple[str, ...] = field("devices that are divided into groups", one_or_many=True)
    size: int | None = field("members per group (default: all members that are `stride` apart)", default=None, minimum=1)
    stride: int = field("distance between consecutive members of a group; 1: neighbours", default=1, minimum=1)

    def parts(self, members: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return the groups in the order of their first members.

        >>> RankGroups(of=("gpu*",), size=2).parts("abcd"), RankGroups(of=("gpu*",), stride=2).parts("abcd")
        ((('a', 'b'), ('c', 'd')), (('a', 'c'), ('b', 'd')))

        Raises:
            CannotGroup: the members cannot be divided into whole groups.
        """
        n, stride = len(members), self.stride
        size = n // stride if self.size is None else self.size
        block = size * stride
        if not block or n % block:
            wanted = f"groups of {size}" if stride == 1 else f"groups of {size} members {stride} apart"
            raise CannotGroup(f"{n} members cannot be divided into {wanted}", f"size x stride ({block}) must divide {n}")
        return tuple(
            tuple(members[start + offset + stride * place] for place in range(size))
            for start in range(0, n, block)
            for offset in range(stride)
        )
