"""The layers of a stage as what a GPU issues: kernels, and what it exchanges with those that share its layers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hwsim.machine.libraries.operations import Operation
from hwsim.models.architectures.split import Piece, passed_on, split, stages
from hwsim.models.architectures.unit_layers import layer_of
from hwsim.models.architectures.units import Unit
from hwsim.models.layer import Kernel, Layer, kernels
from hwsim.records import dataclass
from hwsim.units import BYTES
from hwsim.workload.training.network_kernels import Costs
from hwsim.workload.training.network_plan import NetworkPlan


@dataclass(frozen=True, slots=True)
class Item:
    """A layer in one direction.

    gathered: bytes that all GPUs of a split put together before it.  scattered: of the gradient that goes back, which they
    add up once the first kernel is done.  parameters: whose gradients are complete after it.
    """

    name: str
    ops: tuple[Kernel, ...]
    gathered: float = 0.0
    scattered: float = 0.0
    parameters: int = 0
    tensors: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """The layers of one GPU (or of one split) for a micro-batch; out: bytes that the next stage takes."""

    forward: tuple[Item, ...]
    backward: tuple[Item, ...]
    layers: tuple[Layer, ...]
    out: float

    @property
    def parameters(self) -> int:
        return sum(item.parameters for item in self.backward)

    @property
    def tensors(self) -> int:
        return sum(item.tensors for item in self.backward)


BEFORE: Operation = "all-gather"
AFTER: Operation = "reduce-scatter"


def cut(plan: NetworkPlan, costs: Costs) -> tuple[tuple[Piece, ...], ...]:
    """The layers of each stage, as long as each other as can be; or of the only one, as each GPU of a split does them."""
    units = plan.network.chain()
    if plan.pp == 1:
        return (split(units, plan.tp),)

    def seconds(unit: Unit) -> float:
        layer = layer_of(unit, max(1, plan.batches[0] // plan.microbatches), plan.dtype)
        return math.fsum(costs.seconds(op) for op in kernels((*layer.forward, *layer.backward)))

    return tuple(tuple(Piece(unit) for unit in each) for each in stages(units, plan.pp, seconds))


def stage_of(pieces: Sequence[Piece], batch: int, dtype: str, *, first: bool, training: bool = True) -> Stage:
    """The items of a stage for so many examples at once."""
    width = batch * BYTES[dtype]
    forward: list[Item] = []
    backward: list[Item] = []
    layers = []
    for at, piece in enumerate(pieces):
        layer = layer_of(piece.unit, batch, dtype, training=training, first=first and at == 0)
        layers.append(layer)
        forward.append(Item(piece.unit.name, kernels(layer.forward), gathered=piece.gathers * width))
        backward.append(Item(piece.unit.name, kernels(layer.backward), scattered=piece.scatters * width,
                             parameters=int(layer.parameters), tensors=layer.tensors))  # fmt: skip
    return Stage(tuple(forward), tuple(reversed(backward)), tuple(layers), passed_on(pieces[-1].unit, batch, dtype))
