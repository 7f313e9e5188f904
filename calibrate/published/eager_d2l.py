"""Host time of eager programs: the text's loops over time steps and its optimizers, from the ops that they issue.

    recurrent, by hand        seconds of a batch = call + steps x ops of a step x op        (op: forward, with its backward)
    recurrent, of the library seconds of a batch = call + layers x layer                    (cuDNN, or a loop of the framework)
    optimizer                 seconds of 20 batches = those of plain descent + 20 x further ops x update

The host binds in all of them: a V100 is idle most of the time, and the optimizers' models have six parameters. The times are
those of **other** notebooks of the same builds, `OTHER`, which are in no score: GRU for LSTM, plain descent and RMSProp for the
other optimizers. Ops are counted in the text's code; a slice that is written to is two.

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

TOKENS: Final = 32 * 35  # of a batch
STEPS: Final = 35
BETWEEN: Final = 20  # batches from one stop of the timer to the next; what the notebooks print as an epoch is their mean

# Ops of a time step: gates, candidates and states, and the map to the vocabulary.
BY_HAND: Final[Mapping[str, int]] = {"rnn": 7, "gru": 22, "lstm": 27}
# Layers, two directions as two; ops of a cell where the framework loops over it.
CELLS: Final[Mapping[str, int]] = {"rnn": 5, "gru": 19, "lstm": 14}
LAYERS: Final[Mapping[str, int]] = {"rnn": 1, "gru": 1, "lstm": 1, "deep": 2, "bidirectional": 4}

UPDATES: Final[Mapping[str, tuple[int, int, int]]] = declared("eager_d2l")["updates"]

OTHER: Final[Mapping[str, Mapping[str, tuple[float, ...]]]] = declared("eager_d2l")["other"]
PYTORCH: Final = ("pytorch 2022", "pytorch 2023")
TENSORFLOW: Final = ("tensorflow 2023",)


@dataclass(frozen=True, slots=True)
class Host:
    """Seconds of a framework's host.

    Args:
        op: of an op with gradients, its backward pass included; update: of one without.
        call: of a batch of a recurrent network beyond its steps; layer: of all steps of a layer of the library.
        cell: of an op of a cell that the framework loops over; 0 if one kernel has the loop.
        descent: of 20 batches of plain gradient descent, by hand and with the library's optimizer.
    """

    op: float
    update: float
    call: float
    layer: float
    cell: float
    descent: tuple[float, float]

    def by_hand(self, cell: str) -> float:
        """Seconds of a batch."""
        return self.call + STEPS * BY_HAND[cell] * self.op

    def of_library(self, name: str) -> float:
        """Seconds of a batch."""
        return self.call + LAYERS[name] * (self.layer + STEPS * CELLS.get(name, 0) * self.cell)

    def optimizer(self, name: str, tensorflow: bool, by_hand: bool) -> float:
        """Seconds of 20 batches."""
        ops = UPDATES[name][tensorflow] if by_hand else UPDATES[name][2] * (not tensorflow)  # TensorFlow's are one kernel
        return self.descent[not by_hand] + BETWEEN * ops * self.update


def middle(builds: Sequence[str], cell: str) -> float:
    """The geometric mean of what builds print for a cell."""
    return math.exp(math.fsum(math.log(each) for build in builds for each in OTHER[build][cell])
                    / sum(len(OTHER[build][cell]) for build in builds))  # fmt: skip


def host_of(builds: Sequence[str]) -> Host:
    """The times that the other cells of builds of one framework say.

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
