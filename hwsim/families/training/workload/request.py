"""Request to lower a training, with its surroundings."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import field

from hwsim.graph.builder import GraphBuilder
from hwsim.machine import Machine
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Tree


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """A request to lower a training into a graph.

    Args:
        tree: keys of the training.
        machine: machine.
        builder: builder of the graph.
        mistakes: list for mistakes.
        name: name of its program.
        start: time before the first step (s).
        fold: whether one replica represents identical ones: auto (if there are many), always, or never (with other jobs).
        shared: whether other jobs may use memory of the same devices.
        marks: events of capacities during the run, by name.
        others: devices of other jobs.
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
