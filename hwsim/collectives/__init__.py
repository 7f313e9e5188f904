"""Collectives: the sends of each algorithm, the time they take, and the choice of an algorithm.

ALGORITHMS["ring"].plan("all-reduce", Group(8))     the sends, chunk by chunk; `prove` checks them on integers
cost(machine, ALGORITHMS["ps-cpu"], "all-reduce", devices, 160e6)    as steady flows: phases of demands.

explicit(plan, 160e6, pieces=4)                     as single sends, each with the sends it waits for
timing.timed(machine, None, "all-reduce", devices, 160e6)            as NCCL or the fastest algorithm would do it
"""

from __future__ import annotations

from hwsim.collectives.algorithms import ALGORITHMS, KINDS, Algorithm
from hwsim.collectives.execute import WrongPlan, execute, prove
from hwsim.collectives.flows import Flows, cost
from hwsim.collectives.plan import OPERATIONS, CannotCollect, Group, Operation, Plan, Send
from hwsim.collectives.ring_search import find_rings
from hwsim.collectives.rounds import Wires
from hwsim.collectives.steps import ExplicitSend, explicit
from hwsim.machine.libraries.overheads import Overheads

__all__ = [
    "ALGORITHMS",
    "KINDS",
    "OPERATIONS",
    "Algorithm",
    "CannotCollect",
    "ExplicitSend",
    "Flows",
    "Group",
    "Operation",
    "Overheads",
    "Plan",
    "Send",
    "Wires",
    "WrongPlan",
    "cost",
    "execute",
    "explicit",
    "find_rings",
    "prove",
]
