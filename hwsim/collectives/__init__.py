"""Collectives: who sends what to whom, how long it takes, and which algorithm to choose.

ALGORITHMS["ring"].plan("all-reduce", Group(8))     the sends, chunk by chunk; `prove` checks them on integers
cost(machine, ALGORITHMS["ps-cpu"], "all-reduce", devices, 160e6)    as steady flows: phases of demands
explicit(plan, 160e6, pieces=4)                     as single sends with what each waits for
choose(machine, "all-reduce", devices, 160e6)       what NCCL would do, and what came second
"""

from __future__ import annotations

from hwsim.collectives.algorithms import ALGORITHMS, KINDS, Algorithm, Written
from hwsim.collectives.execute import WrongPlan, execute, prove
from hwsim.collectives.plan import OPERATIONS, CannotCollect, Group, Operation, Plan, Send
from hwsim.collectives.ring_search import FoundRing, find_rings
from hwsim.collectives.rounds import Round, Wires, rounds_of
from hwsim.collectives.steady import Flows, Phase, cost
from hwsim.collectives.steps import ExplicitSend, explicit
from hwsim.collectives.stepwise import CostedSend, sends
from hwsim.machine.libraries.overheads import PLAIN, Overheads

__all__ = [
    "ALGORITHMS",
    "KINDS",
    "OPERATIONS",
    "PLAIN",
    "Algorithm",
    "CannotCollect",
    "CostedSend",
    "ExplicitSend",
    "Flows",
    "FoundRing",
    "Group",
    "Operation",
    "Overheads",
    "Phase",
    "Plan",
    "Round",
    "Send",
    "Wires",
    "Written",
    "WrongPlan",
    "cost",
    "execute",
    "explicit",
    "find_rings",
    "prove",
    "rounds_of",
    "sends",
]
