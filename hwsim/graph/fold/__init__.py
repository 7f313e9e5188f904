"""Folding: identical ranks are simulated once, with exact results.

The template of a run (`TemplateOp`: ops, the ranks that issue them or meet in them, and their demands) is refined to classes of
identical ranks and ops (`refine`). The classes are verified without hashes, and one op of each class represents all of them in
the simulation. If k ops of a class draw from one capacity, the demand counts k times in the shared rate (see `Demand.times`),
while the maximum rate of an op remains that of one op. The engine computes in whole numbers, so the times equal those of the run
without folding, bit for bit.

Two ranks, each with a GPU of its own and a link to a common switch:

>>> from hwsim.demand import Capacity, Cost, Demand
>>> from hwsim.graph.fold import TemplateOp, fold
>>> rates = {name: Capacity(name, 1e9, "B") for name in ("link0", "link1", "switch")}
>>> def send(rank: int) -> TemplateOp:
...     cost = Cost(Demand(amounts=((f"link{rank}", 1e6), ("switch", 1e6)), share=1e6))
...     return TemplateOp("send", cost, (("issues", (rank,)),), line=("comm", rank))
>>> found = fold(["gpu", "gpu"], [send(0), send(1)], rates)
>>> found.representatives, found.ranks.size.tolist(), found.stands_for(0)
((0,), [2], 2)
>>> found.cost(0).demand.drawn
(('link0', 1000000.0, 1), ('switch', 1000000.0, 2))

A generator emits only the ops of `representatives`, in the order of the graph without folding, with the costs of `Fold.cost`. It
emits an op of several ranks (a step of a collective) once per class of such ops, at the position of the first op of the class
(`Fold.ops.leader`). Pools (servers are assigned by op number) and random draws per rank are not folded.
"""

from __future__ import annotations

from hwsim.graph.fold.quotient import CannotFold, Classes, Fold, NoEquals, fold
from hwsim.graph.fold.template import TemplateOp

__all__ = ["CannotFold", "Classes", "Fold", "NoEquals", "TemplateOp", "fold"]
