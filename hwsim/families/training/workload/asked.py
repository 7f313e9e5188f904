"""A training that is to be lowered, and what runs beside it."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import field

from hwsim.graph.builder import GraphBuilder
from hwsim.machine import Machine
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Tree


@dataclass(frozen=True, slots=True)
class Asked:
    """Where a training is written, and what of the run it has to heed.

    Args:
        tree: its keys.
        name: its program.
        start: seconds before the first step.
        fold: whether one of many identical replicas represents all: auto (if they are many), always, never (where something else
            runs on the machine).
        shared: other jobs may hold memory of the same devices.
        marks: what happens to capacities during the run, by name.
        others: devices that other jobs name.
    """

    tree: Tree
    machine: Machine
    builder: GraphBuilder
    mistakes: Mistakes
    name: str
    start: float = 0.0
    fold: str = "auto"
    shared: bool = False
    marks: Mapping[str, Hashable] = field(default_factory=dict)
    others: Collection[str] = ()
