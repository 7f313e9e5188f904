"""Collectives: the sends of each algorithm, their time, and the choice of an algorithm.

ALGORITHMS["ring"].plan("all-reduce", RankGroup(8))     sends, chunk by chunk; `prove` verifies them on integers
Task(machine, "all-reduce", devices, 160e6).flows(ALGORITHMS["ps-cpu"])    steady flows: phases with one demand each.

explicit(plan, 160e6, pieces=4)                     single sends with their dependencies
timing.timed(machine, None, "all-reduce", devices, 160e6)            as NCCL or the fastest algorithm runs it
"""

from __future__ import annotations

from hwsim.communication.algorithms import ALGORITHMS, KINDS, Algorithm
from hwsim.communication.execute import WrongCollectivePlan, execute, prove
from hwsim.communication.flows import Flows, Task
from hwsim.communication.plan import OPERATIONS, CannotCollect, CollectivePlan, Operation, PlanSend, RankGroup
from hwsim.communication.ring_search import find_rings
from hwsim.communication.steps import explicit_sends
from hwsim.machine.libraries.overheads import Overheads

__all__ = [
    "ALGORITHMS",
    "KINDS",
    "OPERATIONS",
    "Algorithm",
    "CannotCollect",
    "CollectivePlan",
    "Flows",
    "Operation",
    "Overheads",
    "PlanSend",
    "RankGroup",
    "Task",
    "WrongCollectivePlan",
    "execute",
    "explicit_sends",
    "find_rings",
    "prove",
]
