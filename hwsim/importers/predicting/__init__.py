"""Predict a recording on another machine: durations from shapes, in the op graph of the replay.

    predict(explain(recording), load_machine("dgx-h100")).graph

An operator is lowered once per set of shapes, on the GPU of its rank. Its kernels share the predicted time in proportion to
their recorded times. A copy takes the time of its bytes over the links of the machine, a memset that of its bytes in memory. A
collective takes the time of the machine's library among the GPUs of its group, after all ranks have arrived; waiting follows
from the replay. Host threads keep their recorded times, because these are software times, so a recording without GPU ops is
refused.

An operator without shapes or without a model keeps its recorded time, and is listed.

**Range**: the recorded kernels in their order, although a library may select other kernels on another GPU. Ops of different
streams do not slow each other down.
"""

from __future__ import annotations

import numpy as np

from hwsim.graph.opgraph import OpGraph
from hwsim.importers.predicting.collectives import exchanges
from hwsim.importers.predicting.kernels import KernelPredictor
from hwsim.importers.predicting.times import OperatorTime, PredictedTimes
from hwsim.importers.replay import RecordingReplay, ReplayOpKind
from hwsim.machine import Machine
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """A recording on a machine.

    Args:
        replay: the replay of the recording.
        machine: the machine.
        graph: op graph of the replay with the times of the machine; predicted ops have derivations.
        rows: times by operator, longest first.
        assumed: assumptions, in sentences.
        devices: GPU of each rank.
    """

    replay: RecordingReplay
    machine: Machine
    graph: OpGraph
    rows: tuple[OperatorTime, ...]
    assumed: tuple[str, ...]
    devices: tuple[str, ...]


def predict(replay: RecordingReplay, machine: Machine) -> Predicted:
    """Predict a recording on a machine.

    Raises:
        WrongMachine: the machine has too few GPUs, or no rank uses a GPU.
    """
    times = PredictedTimes(replay, machine)
    kernels = KernelPredictor(times)
    for position, explained in enumerate(replay.ranks):
        mine = replay.rank == position
        kernels.predict(position, explained, np.flatnonzero(mine & (replay.part == ReplayOpKind.DEVICE)))
        exchanges(times, position, explained, np.flatnonzero(mine & (replay.part == ReplayOpKind.COLLECTIVE)))
    return Predicted(replay, machine, times.graph(), times.rows(), tuple(times.assumed), times.placing.gpus)


__all__ = ["OperatorTime", "Predicted", "predict"]
