"""Every algorithm hwsim knows.  A new one is a new file here and a line in the table.

An algorithm is a frozen dataclass (its fields are the keys a workload may give) that says which
`operations` it does and offers

    plan(operation, group)                  the sends, chunk by chunk; proved by `execute.prove`
    rounds(operation, group)                the same as equal steps and shares, for any number of ranks
    seconds(operation, group, size, wires)  the closed form on equal links
"""

from __future__ import annotations

from typing import Final

from hwsim.collectives.algorithms.binomial_tree import BinomialTree
from hwsim.collectives.algorithms.direct import Direct
from hwsim.collectives.algorithms.double_tree import DoubleTree
from hwsim.collectives.algorithms.halving_doubling import HalvingDoubling
from hwsim.collectives.algorithms.hierarchical import Hierarchical
from hwsim.collectives.algorithms.in_network import InNetwork
from hwsim.collectives.algorithms.pairwise import Pairwise
from hwsim.collectives.algorithms.parameter_server import ParameterServer
from hwsim.collectives.algorithms.recursive_doubling import RecursiveDoubling
from hwsim.collectives.algorithms.ring import Ring
from hwsim.collectives.algorithms.torus import Torus
from hwsim.collectives.algorithms.written import Written

Algorithm = (
    BinomialTree
    | Direct
    | DoubleTree
    | HalvingDoubling
    | Hierarchical
    | InNetwork
    | Pairwise
    | ParameterServer
    | RecursiveDoubling
    | Ring
    | Torus
    | Written
)

KINDS: Final[dict[str, type[Algorithm]]] = {
    "binomial-tree": BinomialTree,
    "direct": Direct,
    "double-tree": DoubleTree,
    "halving-doubling": HalvingDoubling,
    "hierarchical": Hierarchical,
    "in-network": InNetwork,
    "pairwise": Pairwise,
    "parameter-server": ParameterServer,
    "recursive-doubling": RecursiveDoubling,
    "ring": Ring,
    "torus": Torus,
    "written": Written,
}

# What a workload may call them by name; a mapping with `kind` and keys says the rest.
ALGORITHMS: Final[dict[str, Algorithm]] = {
    "binomial-tree": BinomialTree(),
    "direct": Direct(),
    "double-tree": DoubleTree(),
    "halving-doubling": HalvingDoubling(),
    "hierarchical": Hierarchical(),
    "hierarchical-pipelined": Hierarchical(pieces=8),
    "nvls": InNetwork(by="nvls"),
    "pairwise": Pairwise(),
    "ps-cpu": ParameterServer(servers=1, on="beside", at=("cpu",)),
    "ps-gpu0": ParameterServer(servers=1),
    "ps-sharded": ParameterServer(),
    "recursive-doubling": RecursiveDoubling(),
    "ring": Ring(),
    "ring-both-ways": Ring(both=True),
    "rings": Ring(found=True),
    "rings-both-ways": Ring(found=True, both=True),
    "sharp": InNetwork(by="sharp"),
    "torus": Torus(),
    "torus-both-ways": Torus(both=True),
}

__all__ = [
    "ALGORITHMS",
    "KINDS",
    "Algorithm",
    "BinomialTree",
    "Direct",
    "DoubleTree",
    "HalvingDoubling",
    "Hierarchical",
    "InNetwork",
    "Pairwise",
    "ParameterServer",
    "RecursiveDoubling",
    "Ring",
    "Torus",
    "Written",
]
