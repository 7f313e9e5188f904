"""Calls of PyTorch's operators as text: the inputs of a case in the order of the operator's schema, one word each.

    float32:64x256           an array; float32:256x64/t one stored transposed, /h as heads of attention lie, /c channels last
    int64:512<4000           whole numbers below 4000;  int64:256*10 every tenth number;  int64:2560//10 each number ten times
    [float32:8;float32:8]    a list of arrays
    1  [1,1]  False  None    anything else, as Python writes it

The text becomes the call that a fit knows (`call_of_case`, which needs no PyTorch), and the call that is timed (`torch_case`).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Final

import numpy as np

from hwsim.devices.work import Call
from hwsim.importers.recording import Facts
from hwsim_calibrate import clocks
from hwsim_calibrate.case import CannotMeasure, Case
from hwsim_calibrate.demanded import heard
from hwsim_calibrate.recording.tape import CODE, Tape
from hwsim_calibrate.recording.torch_calls import statement_of
from hwsim_calibrate.store import Amounts, Param

SUITE: Final = "torch"
LEAST: Final = 3  # calls in a sample of a case after others
MOST: Final = 2000  # calls in a sample
OTHERS: Final = (  # calls in between, of a case after others
    ("tanh", "float32:8"), ("bmm", "float32:2x3x4 float32:2x4x3"), ("sign", "float32:8"), ("max", "float32:8"),
    ("flip", "float32:8 [0]"),
    ("tril", "float32:3x3 0"),
)  # fmt: skip
_ARRAY: Final = re.compile(r"(float32|float64|bfloat16|int64|bool):([\dx]*)(?:/([thcn]))?(?:<(\d+)|\*(\d+)|//(\d+))?")
_WIDTHS: Final = {"float32": 4, "float64": 8, "bfloat16": 2, "int64": 8, "bool": 1}


@dataclass(frozen=True, slots=True)
class Array:
    """An array of a case. layout: how it lies in memory. below, every, each: what whole numbers it holds."""

    dtype: str
    shape: tuple[int, ...]
    layout: str = ""
    below: int = 0
    every: int = 0
    each: int = 0

    @property
    def order(self) -> tuple[int, ...]:
        """The axes in the order of memory, the outermost first."""
        axes = list(range(len(self.shape)))
        if self.layout == "t":
            axes[-2:] = axes[-1:-3:-1]
        elif self.layout == "h":
            axes[1:3] = axes[2:0:-1]
        elif self.layout == "c":
            axes = [0, *axes[2:], 1]
        return tuple(axes)

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one to the next along each axis.

        >>> Array("float32", (2, 3, 4), "t").strides
        (12, 1, 3)
        """
        step, steps = 1, [0] * len(self.shape)
        for axis in reversed(self.order):
            steps[axis], step = step, step * self.shape[axis]
        return tuple(steps)

    @property
    def bytes(self) -> float:
        return float(math.prod(self.shape) * _WIDTHS[self.dtype])


Word = Array | tuple[Array, ...] | Any


def words_of(inputs: str) -> list[Word]:
    """The inputs of a case.

    >>> words_of("float32:2x3 None [1,1] True")
    [Array(dtype='float32', shape=(2, 3), layout='', below=0, every=0, each=0), None, [1, 1], True]
    """
    return [_word(text) for text in inputs.split()]


def _word(text: str) -> Word:
    if text.startswith("[") and ":" in text:
        return tuple(_word(each) for each in text[1:-1].split(";"))
    array = _ARRAY.fullmatch(text)
    if array is None:
        return ast.literal_eval(text)
    dtype, sides, layout, below, every, each = array.groups()
    shape = tuple(int(side) for side in sides.split("x")) if sides else ()
    if every:
        return Array(dtype, shape, every=int(every))
    return Array(dtype, shape, layout or "", int(below or 0), 0, int(each or 0))


def facts_of_case(inputs: str) -> Facts:
    """Facts of the inputs, as a recorder has them."""
    words = words_of(inputs)
    return Facts(
        shapes=tuple(_each(word, lambda array: array.shape, ()) for word in words),
        dtypes=tuple(_dtype(word) for word in words),
        strides=tuple(word.strides if isinstance(word, Array) else () for word in words),
        values=tuple("" if word is None or _arrays(word) else str(word) for word in words),
    )


def _arrays(word: Word) -> tuple[Array, ...]:
    return (word,) if isinstance(word, Array) else word if isinstance(word, tuple) else ()


def _each(word: Word, what: Callable[[Array], Any], otherwise: Any) -> Any:
    if isinstance(word, Array):
        return what(word)
    return tuple(what(each) for each in word) if isinstance(word, tuple) else otherwise


def _dtype(word: Word) -> str:
    if isinstance(word, Array):
        return word.dtype
    return f"TensorList<{word[0].dtype}>" if isinstance(word, tuple) else ""


@cache
def call_of_case(op: str, inputs: str, after: int = 0) -> Call | None:
    """The call of a case, `after` other calls with this number of bytes; None if hwsim has no op for it."""
    kind, keys, reason = statement_of(f"aten::{op.partition('.')[0]}", facts_of_case(inputs))
    call = None if reason else heard(kind, {**keys, "cores": 1})
    if call is None or not after:
        return call
    since = float(after + len(OTHERS) * CODE)
    old = tuple(replace(each, since=since + call.moved) for each in call.operands)
    return replace(call, operands=old, idle=since)


def torch_case(op: str, inputs: str, after: int = 0) -> Case:
    """A case of the suite: an operator by its name and overload, with these inputs, `after` others with this number of bytes."""
    moved = sum(array.bytes for word in words_of(inputs) for array in _arrays(word))
    params: Mapping[str, Param] = {"inputs": inputs, **({"after": after} if after else {})}
    timer = partial(_sampled, after)
    most = LEAST if after else MOST
    return Case(SUITE, op, params, Amounts(0.0, moved, moved), lambda _: _prepared(op, inputs), timer=timer, most=most)


@cache
def _memory(size: int) -> np.ndarray:
    return np.zeros(size // 8)


@cache
def _others() -> tuple[clocks.Call, ...]:
    return tuple(_prepared(*spec) for spec in OTHERS)


@cache
def _tape() -> Tape:
    return Tape(only_times=True)


def _sampled(after: int, call: clocks.Call, loops: int) -> clocks.Sample:
    """Calls as a recorder times them, below autograd; each after other calls and other memory, if the case says so."""
    from hwsim_calibrate.recording.torch import recording_torch

    tape = _tape()
    tape.times.clear()
    with recording_torch(tape):
        for _ in range(loops):
            if after:
                np.add(_memory(after), 1.0, out=_memory(after))
                tape.inside += 1
                for another in _others():
                    another()
                tape.inside -= 1
            call()
    wall, cpu, faults = (sum(getattr(each, key) for each in tape.times) / loops for key in ("wall", "cpu", "faults"))
    return clocks.Sample(max(wall, 1e-8), max(cpu, 1e-8), faults=faults)


def _prepared(op: str, inputs: str) -> clocks.Call:
    """The call with its arrays; each in a fresh state of gradients, on one thread."""
    import torch

    torch.set_num_threads(1)
    name, _, overload = op.partition(".")
    try:
        function = getattr(getattr(torch.ops.aten, name), overload or "default")
    except AttributeError:
        raise CannotMeasure(f"this PyTorch has no {op}") from None
    generator = torch.Generator().manual_seed(7)
    arguments = [_made(torch, word, generator) for word in words_of(inputs)]
    if name == "mkldnn_rnn_layer_backward":
        arguments = _recurrent(torch, arguments)
    schema = function._schema.arguments  # noqa: SLF001 (the only place that names them)
    given, named = [], {}
    for argument, value in zip(schema, arguments, strict=False):
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            given.append(value)
    if named:
        return lambda: function(*given, **named)
    return lambda: function(*given)


def _made(torch: Any, word: Word, generator: Any) -> Any:
    if isinstance(word, tuple):
        return [_made(torch, each, generator) for each in word]
    if not isinstance(word, Array):
        return word
    count = math.prod(word.shape)
    if word.every:
        return torch.arange(0, count * word.every, word.every)
    if word.each:
        return torch.arange(count) // word.each
    if word.dtype == "int64":
        return torch.randint(max(word.below, 1), word.shape, generator=generator)
    if word.dtype == "bool":
        return torch.rand(word.shape, generator=generator) > 0.5
    lying = [word.shape[axis] for axis in word.order]
    back = [word.order.index(axis) for axis in range(len(lying))]
    drawn = torch.rand(lying, generator=generator) * 0.8 + 0.6  # near 1: repeated in place it stays finite, and no denormals
    return drawn.to(getattr(torch, word.dtype)).permute(back)


def _recurrent(torch: Any, arguments: list[Any]) -> list[Any]:
    """Inputs of the gradient of a recurrent layer: what its forward pass has left."""
    image, *weights = arguments[:5]
    hidden = weights[1].shape[1]
    state = torch.zeros(1, image.shape[1], hidden)
    forward = torch.ops.aten.mkldnn_rnn_layer.default
    output, hy, cy, workspace = forward(image, *weights, state, state, False, [], 2, hidden, 1, True, False, False, True)
    gradient = torch.rand(output.shape)
    return [image, *weights, state, state, output, hy, cy, gradient, None, None, False, 2, hidden, 1, True, True, False, [],
    False,
            workspace]  # fmt: skip
