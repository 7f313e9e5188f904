"""A grid in any number of dimensions whose rows close to rings: pods of TPUs, and older supercomputers.

Members fill the grid in their natural order, the last dimension first.  A dimension of two has a single link.
Source: Jouppi et al., "TPU v4: an optically reconfigurable supercomputer", ISCA 2023 (4 x 4 x 4 cubes, closed to tori).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hwsim.machine.topologies.edge import Edge
from hwsim.records import dataclass
from hwsim.spec.fields import field


@dataclass(frozen=True, slots=True)
class Torus:
    """`size: [4, 4, 4]`; without `wrap` a mesh."""

    size: tuple[int, ...] = field("members along each dimension", one_or_many=True, minimum=1, example="[4, 4, 4]")
    wrap: bool = field("the last of a row is linked to its first", default=True)

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Raise ValueError unless they fill the grid.

        >>> [len(grid.edges("abcdefgh")) for grid in (Torus((4, 2)), Torus((4, 2), wrap=False), Torus((2, 2, 2)))]
        [12, 10, 12]
        """
        if math.prod(self.size) != len(members):
            said = " x ".join(str(each) for each in self.size)
            raise ValueError(f"a torus of {said} has {math.prod(self.size)} members, not {len(members)}")
        found = []
        stride = len(members)
        for length in self.size:
            stride //= length
            for at, name in enumerate(members):
                place = at // stride % length
                last = place == length - 1
                if length > 1 and (not last or (self.wrap and length > 2)):
                    found.append(Edge(name, members[at + stride - (length * stride if last else 0)]))
        return found
