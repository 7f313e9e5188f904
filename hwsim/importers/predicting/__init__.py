"""A recording on another machine: durations from shapes, in the replay's graph.

    predict(explain(recording), load_machine("dgx-h100")).graph

An operator is lowered once for each set of shapes, on the GPU of its rank; its kernels share that time in proportion to what
was recorded of them. A copy is as long as its bytes take over the machine's links, a memset as its memory takes. A collective
is as long as the machine's library takes among the GPUs of its group, once all ranks have come: waiting follows from the
replay. Host threads are as recorded, for what they take is software, so that a recording without a GPU is refused.

An operator without shapes, or without a statement, keeps its recorded time, and is listed with it.

**Range**: the kernels of the recording, in their order: a library may take others on another GPU. Ops of one stream follow
one another, ops of several streams do not slow each other down.
"""

from __future__ import annotations

import numpy as np

from hwsim.graph.opgraph import OpGraph
from hwsim.importers.placing import WrongMachine
from hwsim.importers.predicting.exchanging import exchanges
from hwsim.importers.predicting.kernels import Kernels
from hwsim.importers.predicting.times import Row, Times
from hwsim.importers.replay import Part, Replay
from hwsim.machine import Machine
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """A recording on a machine.

    Args:
        graph: the replay's, with the times of the machine; ops whose times were predicted have their derivations.
        rows: by operator, the longest first. assumed: what was assumed, in sentences.
        devices: GPU of each rank.
    """

    replay: Replay
    machine: Machine
    graph: OpGraph
    rows: tuple[Row, ...]
    assumed: tuple[str, ...]
    devices: tuple[str, ...]


def predict(replay: Replay, machine: Machine) -> Predicted:
    """The recording on the machine.

    Raises:
        WrongMachine: it has too few GPUs for the ranks, or no rank uses one.
    """
    times = Times(replay, machine)
    kernels = Kernels(times)
    for position, explained in enumerate(replay.ranks):
        mine = replay.rank == position
        kernels.predict(position, explained, np.flatnonzero(mine & (replay.part == Part.DEVICE)))
        exchanges(times, position, explained, np.flatnonzero(mine & (replay.part == Part.COLLECTIVE)))
    return Predicted(replay, machine, times.graph(), times.rows(), tuple(times.assumed), times.placing.gpus)


__all__ = ["Predicted", "Row", "WrongMachine", "predict"]
