"""Host time of eager programs: loops over time steps and optimizers of *Dive into Deep Learning*, from their ops.

    recurrent, handwritten    seconds of a batch = call + steps x ops of a step x op        (op: forward, with its backward)
    recurrent, library        seconds of a batch = call + layers x layer                    (cuDNN, or a loop of the framework)
    optimizer                 seconds of 20 batches = those of plain descent + 20 x further ops x update

All these programs are host-bound: a V100 is mostly idle, and the optimizers' models have six parameters. The constants are from
**other** notebooks of the same builds, `OTHER`, which are not scored: GRU for LSTM, plain descent and RMSProp for the other
optimizers. Ops are counted in the book's code; a write to a slice counts as two ops.

**Source**: printed outputs of d2l-ai/d2l-pytorch-sagemaker-studio-lab (2022), d2l-ai/d2l-zh-pytorch-sagemaker and
d2l-ai/d2l-zh-tensorflow-sagemaker (2023).

**Error**: see `docs/validation/models.md`. The same cell in two builds differs by 5 to 60 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from published.parts import declared

TOKENS: Final = 32 * 35  # time steps of a batch
STEPS: Final = 35
BETWEEN: Final = 20  # batches per timer interval; notebooks print their mean as an epoch

# Ops of a time step: gates, candidates and states, and the output layer.
BY_HAND: Final[Mapping[str, int]] = {"rnn": 7, "gru": 22, "lstm": 27}
# Layers (two directions count twice); ops of a cell if the framework loops over time steps.
CELLS: Final[Mapping[str, int]] = {"rnn": 5, "gru": 19, "lstm": 14}
LAYERS: Final[Mapping[str, int]] = {"rnn": 1, "gru": 1, "lstm": 1, "deep": 2, "bidirectional": 4}

UPDATES: Final[Mapping[str, tuple[int, int, int]]] = declared("eager_d2l")["updates"]

OTHER: Final[Mapping[str, Mapping[str, tuple[float, ...]]]] = declared("eager_d2l")["other"]
PYTORCH: Final = ("pytorch 2022", "pytorch 2023")
TENSORFLOW: Final = ("tensorflow 2023",)


@dataclass(frozen=True, slots=True)
class Host:
    """Host times of a framework, in seconds.

    Args:
        op: an op with gradients, including its backward pass; update: an op without gradients.
        call: a batch of a recurrent network without its time steps; layer: all time steps of a library layer.
        cell: an op of a cell if the framework loops over time steps; 0 if one kernel contains the loop.
        descent: 20 batches of plain gradient descent, handwritten and with the library's optimizer.
    """

    op: float
    update: float
    call: float
    layer: float
    cell: float
    descent: tuple[float, float]

    def by_hand(self, cell: str) -> float:
        """Return the time of a batch of a handwritten recurrent network, in seconds."""
        return self.call + STEPS * BY_HAND[cell] * self.op

    def of_library(self, name: str) -> float:
        """Return the time of a batch of a library recurrent network, in seconds."""
        return self.call + LAYERS[name] * (self.layer + STEPS * CELLS.get(name, 0) * self.cell)

    def optimizer(self, name: str, tensorflow: bool, by_hand: bool) -> float:
        """Return the time of 20 batches, in seconds."""
        ops = UPDATES[name][tensorflow] if by_hand else UPDATES[name][2] * (not tensorflow)  # one kernel in TensorFlow
        return self.descent[not by_hand] + BETWEEN * ops * self.update


def middle(builds: Sequence[str], cell: str) -> float:
    """Return the geometric mean of the values that several builds print for a cell."""
    return math.exp(math.fsum(math.log(value) for build in builds for value in OTHER[build][cell])
                    / sum(len(OTHER[build][cell]) for build in builds))  # fmt: skip


def host_of(builds: Sequence[str]) -> Host:
    """Return the host times derived from other cells of a framework's builds.

    >>> [round(1e5 * each.op) for each in (host_of(PYTORCH), host_of(TENSORFLOW))]
    [6, 27]
    """

    def batch(cell: str) -> float:
        return TOKENS / middle(builds, cell)

    descent = middle(builds, "descent by hand"), middle(builds, "descent")
    update = (middle(builds, "rmsprop by hand") - descent[0]) / (BETWEEN * UPDATES["rmsprop"][0])
    if "gru" in OTHER[builds[0]]:  # loops over cells
        op = (batch("gru by hand") - batch("rnn by hand")) / (STEPS * (BY_HAND["gru"] - BY_HAND["rnn"]))
        call = batch("gru by hand") - STEPS * BY_HAND["gru"] * op
        cell = (batch("gru") - batch("rnn")) / (STEPS * (CELLS["gru"] - CELLS["rnn"]))
        return Host(op, update, call, batch("rnn") - call - STEPS * CELLS["rnn"] * cell, cell, descent)
    layer = (batch("bidirectional") - batch("rnn")) / (LAYERS["bidirectional"] - LAYERS["rnn"])
    call = batch("rnn") - layer
    return Host((batch("gru by hand") - call) / (STEPS * BY_HAND["gru"]), update, call, layer, 0.0, descent)
