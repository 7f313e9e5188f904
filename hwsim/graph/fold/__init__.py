"""Folding: identical ranks are simulated once, exactly.

The template of a run (`TemplateOp`: ops, the ranks that issue them or meet in them, the amounts they draw) is refined to
classes of identical ranks and ops (`refine`). The classes are compared once more without a hash, and one op of each class
is simulated on behalf of all. If k of them draw on one capacity, its demand weighs k times in what is shared (see
`Demand.times`), while its own pace alone stays the pace of one. As the engine computes in whole numbers, the times equal the
unfolded run's, bit for bit.

Two ranks, each with a GPU of its own and a link to a switch that both share:

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

A generator emits the ops of `representatives` alone, in the order in which it would emit all of them, with the costs that
`Fold.cost` gives. An op of several ranks (a step of a collective) once for each class of such ops, at the place of its first
(`Fold.ops.leader`). Not folded: pools (who gets a server first is decided by number) and what is drawn by chance for each.
"""

from __future__ import annotations

from hwsim.graph.fold.quotient import CannotFold, Classes, Fold, NoEquals, fold
from hwsim.graph.fold.template import Draw, TemplateOp

__all__ = ["CannotFold", "Classes", "Draw", "Fold", "NoEquals", "TemplateOp", "fold"]
