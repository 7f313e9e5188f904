"""Collectives: the sends of each algorithm, their time, and the choice of an algorithm.

ALGORITHMS["ring"].plan("all-reduce", Group(8))     sends, chunk by chunk; `prove` verifies them on integers
Task(machine, "all-reduce", devices, 160e6).flows(ALGORITHMS["ps-cpu"])    steady flows: phases with one demand each.

explicit(plan, 160e6, pieces=4)                     single sends with their dependencies
timing.timed(machine, None, "all-reduce", devices, 160e6)            as NCCL or the fastest algorithm runs it
"""

from __future__ import annotations

from hwsim.communication.algorithms import ALGORITHMS, KINDS, Algorithm
from hwsim.communication.execute import WrongPlan, execute, prove
from hwsim.communication.flows import Flows, Task
from hwsim.communication.plan import OPERATIONS, CannotCollect, Group, Operation, Plan, Send
from hwsim.communication.ring_search import find_rings
from hwsim.communication.steps import ExplicitSend, explicit
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
    "Task",
    "WrongPlan",
    "execute",
    "explicit",
    "find_rings",
    "prove",
]
