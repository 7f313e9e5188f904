"""Groups of ranks, as a workload declares them: who takes part in one collective.

    groups: {tp: {of: gpu*, size: 8}, dp: {of: gpu*, stride: 8}}

Among n members in their natural order, a group holds `size` of them, `stride` apart; the groups together hold every
member once.  `size: 8` makes neighbours groups of eight; `stride: 8` puts every eighth member into one group.
Source: the process groups of tensor, pipeline and data parallelism (Narayanan et al., "Efficient large-scale language
model training on GPU clusters using Megatron-LM", SC 2021).
"""

from __future__ import annotations

from collections.abc import Sequence

from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.spec.mistakes import Hinted


class CannotGroup(Hinted):
    """A number of members that does not make whole groups; `hint` says what would."""


@dataclass(frozen=True, slots=True)
class RankGroups:
    """A declared set of groups."""

    of: tuple[str, ...] = field("the members", one_or_many=True)
    size: int | None = field("members of one group (default: as many as there are at that stride)", default=None, minimum=1)
    stride: int = field("how far apart the members of a group are", default=1, minimum=1)

    def parts(self, members: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The groups, in the order of their first members.

        >>> RankGroups(of=("gpu*",), size=2).parts("abcd"), RankGroups(of=("gpu*",), stride=2).parts("abcd")
        ((('a', 'b'), ('c', 'd')), (('a', 'c'), ('b', 'd')))

        Raises:
            CannotGroup: they do not divide evenly.
        """
        n, stride = len(members), self.stride
        size = n // stride if self.size is None else self.size
        block = size * stride
        if not block or n % block:
            wanted = f"groups of {size}" if stride == 1 else f"groups of {size} members {stride} apart"
            raise CannotGroup(f"{n} members do not make {wanted}", f"size x stride ({block}) must divide {n}")
        return tuple(
            tuple(members[start + offset + stride * place] for place in range(size))
            for start in range(0, n, block)
            for offset in range(stride)
        )
