"""Shapes for a published recording that has none, from the model that was run: for validation alone.

    shaped(recording, load_network("resnet-18"), 128)

A step of a network calls the operators of its units in order, then their gradients the other way round, each row on one
thread. Both rows are laid along the recorded calls of these operators: a call that the row does not expect is passed over and
stays without shapes. Convolutions and norms must all be expected: otherwise another model was run, and the recording is
refused.

**Source**: PyTorch's modules (`BatchNorm2d` counts its batches before it runs); He et al., arXiv:1512.03385.
**Range**: networks of convolutions (`kind: cnn`) and perceptrons in fp32, training or inference, one batch at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from hwsim.importers.aten import plain
from hwsim.importers.recording import Rank, Recording, SliceFacts, What
from hwsim.models.architectures.network import FeedForwardNetwork
from hwsim.models.architectures.units import NetworkUnit, size
from hwsim.records import dataclass

# operators of a unit of each kind: the innermost that launches kernels; of the names the first that a recording has
FORWARD: Final[Mapping[str, tuple[str, ...]]] = {
    "conv": ("cudnn_convolution", "mkldnn_convolution", "miopen_convolution", "_conv_depthwise2d", "thnn_conv2d"),
    "norm": ("cudnn_batch_norm", "native_batch_norm", "miopen_batch_norm"),
    "activation": ("clamp_min_", "relu_", "clamp_min", "relu", "threshold_"),
    "pool": ("max_pool2d_with_indices",),
    "mean": ("mean", "_adaptive_avg_pool2d", "avg_pool2d"),
    "linear": ("addmm",),
    "add": ("add_", "add"),
    "scores": ("_log_softmax",),
    "loss": ("nll_loss_forward",),
}
BACKWARD: Final[Mapping[str, tuple[str, ...]]] = {
    "conv": ("convolution_backward",),
    "norm": ("cudnn_batch_norm_backward", "native_batch_norm_backward", "miopen_batch_norm_backward"),
    "activation": ("threshold_backward",),
    "pool": ("max_pool2d_with_indices_backward",),
    "mean": ("_adaptive_avg_pool2d_backward", "avg_pool2d_backward", "div"),
    "linear": ("mm",),
    "add": ("add_", "add"),
    "scores": ("_log_softmax_backward_data",),
    "loss": ("nll_loss_backward",),
}
NEEDED: Final = frozenset({"conv", "norm"})  # kinds whose calls must all be expected
NAMED: Final = {"conv": "a convolution", "norm": "a norm", "linear": "a linear map", "add": "a sum"}
COUNTED: Final = SliceFacts(shapes=((), ()), dtypes=("long int", "Scalar"))


class OtherModel(ValueError):
    """A recording that this model did not make."""


@dataclass(frozen=True, slots=True)
class Given:
    """Calls that have shapes now, of how many steps."""

    calls: int
    steps: int


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that a step makes. kind: of the unit; optional: some models or versions do without it."""

    kind: str
    facts: SliceFacts
    optional: bool = False


def shaped(recording: Recording, model: FeedForwardNetwork, batch: int) -> tuple[Recording, Given]:
    """The recording with the shapes of the model's operators; calls that have shapes keep them.

    Raises:
        OtherModel: steps of this model make other calls.
    """
    units = model.chain()
    ranks, calls, steps = [], 0, 0
    for rank in recording.ranks:
        filled = _Filled(rank, units, batch)
        ranks.append(filled.rank())
        calls, steps = calls + filled.calls, max(steps, filled.steps)
    if not calls:
        raise OtherModel("no operator of this model is in the recording")
    return replace(recording, ranks=tuple(ranks)), Given(calls, steps)


class _Filled:
    """The facts of the operators of one rank."""

    def __init__(self, rank: Rank, units: Sequence[NetworkUnit], batch: int) -> None:
        self._rank, self._units, self._batch = rank, units, batch
        self._facts: list[SliceFacts] = list(rank.facts)
        self._given: dict[SliceFacts, int] = {}
        self._column = rank.slices.facts.copy()
        self._names = [plain(name) for name in rank.names]
        self.calls = self.steps = 0

    def rank(self) -> Rank:
        """The rank with the shapes of its calls."""
        self._lay(FORWARD, list(_forward(self._units, self._batch)))
        self._lay(BACKWARD, list(_backward(self._units, self._batch)))
        self._optimizer()
        slices = replace(self._rank.slices, facts=self._column)
        return replace(self._rank, slices=slices, facts=tuple(self._facts))

    def _lay(self, table: Mapping[str, tuple[str, ...]], calls: Sequence[_Call]) -> None:
        """Lay the calls of a step along the thread that has the convolutions, again and again."""
        slices = self._rank.slices
        operators = np.flatnonzero(slices.what == What.OP)
        present = {self._names[number] for number in np.unique(slices.name[operators]).tolist()}
        kinds = {kind: next((name for name in names if name in present), "") for kind, names in table.items()}
        by_name = {name: kind for kind, name in kinds.items() if name}
        wanted = np.array([name in by_name for name in self._names])
        chosen = operators[wanted[slices.name[operators]]]
        expected = [call for call in calls if kinds[call.kind]]
        first = next((call.kind for call in expected if call.kind in NEEDED), expected[0].kind if expected else "")
        lanes = {int(slices.lane[op]) for op in chosen.tolist() if by_name[self._names[slices.name[op]]] == first}
        for lane in sorted(lanes):
            places = [op for op in chosen.tolist() if slices.lane[op] == lane]
            self._align(places, [by_name[self._names[slices.name[place]]] for place in places], expected)

    def _align(self, places: Sequence[int], kinds: Sequence[str], expected: Sequence[_Call]) -> None:
        turn = 0
        for index, (place, kind) in enumerate(zip(places, kinds, strict=True)):
            ahead = next(
                (
                    after
                    for after in range(len(expected))
                    if expected[(turn + after) % len(expected)].kind == kind
                    or not expected[(turn + after) % len(expected)].optional
                ),
                0,
            )
            call = expected[(turn + ahead) % len(expected)]
            if call.kind == kind:
                self._put(place, call.facts)
                turn += ahead + 1
            elif kind in NEEDED:
                name = self._rank.names[self._rank.slices.name[place]]
                expects = NAMED.get(call.kind, call.kind)
                raise OtherModel(f"another model was run: call {index + 1} is {name}, where a step of this one has {expects}")
        self.steps = max(self.steps, turn // len(expected))

    def _put(self, place: int, facts: SliceFacts) -> None:
        number = self._column[place]
        if number < 0 or self._rank.facts[number].shapes is None:
            if facts not in self._given:
                self._given[facts] = len(self._facts)
                self._facts.append(facts)
            self._column[place] = self._given[facts]
            self.calls += 1

    def _optimizer(self) -> None:
        """Lists of all parameters: of what the calls of an optimizer read, all arrays but one are as long as they are."""
        slices = self._rank.slices
        shapes = tuple((unit.parameters,) for unit in self._units if unit.parameters)
        for place in np.flatnonzero(slices.what == What.OP).tolist():
            name = self._names[slices.name[place]]
            if name.startswith("_foreach_"):
                lists = 1 if name.rstrip("_").endswith(("mul", "sqrt", "neg", "zero")) else 2
                self._put(place, SliceFacts(shapes=(shapes,) * lists, dtypes=("TensorList<float>",) * lists))


def _forward(units: Sequence[NetworkUnit], batch: int) -> Iterator[_Call]:
    for unit in units:
        into, out = (batch, *unit.into), (batch, *unit.out)
        match unit.kind:
            case "conv":
                yield _Call("conv", SliceFacts(shapes=(into, _weights(unit), out), dtypes=("float",) * 3, result=2))
            case "norm":
                yield _Call("add", COUNTED, optional=True)
                yield _Call("norm", _floats(into))
            case "linear":
                yield _Call("linear", _floats((size(unit.out),), (batch, size(unit.into)), (size(unit.into), size(unit.out))))
            case "pool" if unit.kernel == unit.into[1:]:
                yield _Call("mean", _floats(into), optional=True)
            case "pool":
                yield _Call("pool", _window(unit, into), optional=True)
            case "activation":
                yield _Call("activation", _floats(into), optional=True)
            case "add":
                yield _Call("add", _floats(into, into))
    classes = (batch, size(units[-1].out))
    yield _Call("scores", _floats(classes), optional=True)
    yield _Call("loss", _floats(classes), optional=True)


def _backward(units: Sequence[NetworkUnit], batch: int) -> Iterator[_Call]:
    """The first unit with weights needs no gradient of its input."""
    classes = (batch, size(units[-1].out))
    yield _Call("loss", _floats((), classes), optional=True)
    yield _Call("scores", _floats(classes, classes), optional=True)
    first = next((unit for unit in units if unit.kind in ("conv", "linear")), None)
    forks = _forks(units)
    for unit in reversed(units):
        into, out = (batch, *unit.into), (batch, *unit.out)
        match unit.kind:
            case "conv":
                yield _Call("conv", _gradient(unit, batch, unit is first))
            case "norm":
                yield _Call("norm", _floats(into, into))
            case "linear":
                rows, columns = size(unit.out), size(unit.into)
                if unit is not first:
                    yield _Call("linear", _floats((batch, rows), (rows, columns)))
                yield _Call("linear", _floats((rows, batch), (batch, columns)))
            case "pool" if unit.kernel == unit.into[1:]:
                yield _Call("mean", _floats(into), optional=True)
            case "pool":
                yield _Call("pool", _window(unit, out, into), optional=True)
            case "activation":
                facts = SliceFacts(shapes=(into, into, ()), dtypes=("float", "float", "Scalar"), values=("", "", "0"))
                yield _Call("activation", facts, optional=True)
        if unit.name in forks:  # the gradients of both ways are summed
            yield _Call("add", _floats(into, into), optional=True)


def _gradient(unit: NetworkUnit, batch: int, first: bool) -> SliceFacts:
    """convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, ..., groups, output_mask)"""
    values = ("",) * 4 + (f"[{unit.stride}, {unit.stride}]", "", "", "False", "", str(unit.groups), f"[{not first}, True, False]")
    shapes: tuple[Any, ...] = ((batch, *unit.out), (batch, *unit.into), _weights(unit), *[()] * 8)
    return SliceFacts(shapes=shapes, dtypes=("float",) * 3 + ("Scalar",) * 8, values=values)


def _floats(*shapes: tuple[int, ...]) -> SliceFacts:
    return SliceFacts(shapes=shapes, dtypes=("float",) * len(shapes))


def _weights(unit: NetworkUnit) -> tuple[int, ...]:
    return unit.out[0], unit.into[0] // unit.groups, *unit.kernel


def _window(unit: NetworkUnit, *shapes: tuple[int, ...]) -> SliceFacts:
    """Facts of a pool: its arrays, then window, stride and padding."""
    side = unit.kernel[0]
    padding = max(0, ((unit.out[1] - 1) * unit.stride + side - unit.into[1] + 1) // 2)
    values = ("",) * len(shapes) + tuple(f"[{number}, {number}]" for number in (side, unit.stride, padding))
    return SliceFacts(shapes=(*shapes, (), (), ()), dtypes=("float",) * len(shapes) + ("ScalarList",) * 3, values=values)


def _forks(units: Sequence[NetworkUnit]) -> set[str]:
    """Names of the first unit of each residual block, whose input goes two ways."""
    blocks: dict[str, str] = {}
    for unit in units:
        blocks.setdefault(unit.name.split(".conv")[0], unit.name)
    return {blocks[unit.name.removesuffix(".add")] for unit in units if unit.kind == "add"}
