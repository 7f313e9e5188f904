"""All collective algorithms. A new algorithm is a module here and a line in `KINDS`."""

from __future__ import annotations

from typing import Final

from hwsim.communication.algorithms.algorithm import Algorithm
from hwsim.spec.kinds import KindTable

KINDS: Final = KindTable[type[Algorithm]](
    {
        "binomial-tree": f"{__name__}.binomial_tree:BinomialTree",
        "direct": f"{__name__}.direct:DirectExchange",
        "double-tree": f"{__name__}.double_tree:DoubleTree",
        "halving-doubling": f"{__name__}.halving_doubling:HalvingDoubling",
        "hierarchical": f"{__name__}.hierarchical:Hierarchical",
        "in-network": f"{__name__}.in_network:InNetwork",
        "own": f"{__name__}.custom_allreduce:OwnKernel",
        "pairwise": f"{__name__}.pairwise:Pairwise",
        "parameter-server": f"{__name__}.parameter_server:ParameterServer",
        "recursive-doubling": f"{__name__}.recursive_doubling:RecursiveDoubling",
        "ring": f"{__name__}.ring:RingAlgorithm",
        "torus": f"{__name__}.torus:TorusAlgorithm",
        "written": f"{__name__}.user_plan:UserPlan",
    }
)

# Algorithms that a workload may name; a mapping with `kind` and keys defines any other.
ALGORITHMS: Final[dict[str, Algorithm]] = dict(
    sorted(
        (name, cls(**keys))
        for kind, cls in KINDS.items()
        for name, keys in ({kind: {}} if cls.presets is None else cls.presets).items()
    )
)

__all__ = ["ALGORITHMS", "KINDS", "Algorithm"]
