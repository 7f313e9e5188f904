"""The recorded inputs of a PyTorch operator: shapes, data types, and values as text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from hwsim.importers.collectives import dtype_name
from hwsim.importers.recording import Shape, SliceFacts
from hwsim.records import dataclass
from hwsim.units import BYTES

OPERATORS: Final[Mapping[str, Any]] = yaml.safe_load(Path(__file__).with_name("operators.yaml").read_text(encoding="utf-8"))
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?", re.IGNORECASE)
# index: number of a `torch.dtype` among values (c10::ScalarType)
CODES: Final = (
    "int8", "int8", "int16", "int32", "int64", "fp16", "fp32", "fp64", "", "complex64", "complex128", "bool",
    "int8", "int8", "int32", "bf16",
)  # fmt: skip


def named(group: str) -> frozenset[str]:
    """Return the operators of a group of `operators.yaml`."""
    return frozenset(OPERATORS[group].split())


class Unknown(ValueError):
    """An error for a fact that is missing in the file."""


def format_of(dtype: str) -> str:
    """Return hwsim's name of a tensor's data type; "" for other types.

    >>> format_of("c10::BFloat16"), format_of("torch.float32"), format_of("long int"), format_of("Scalar")
    ('bf16', 'fp32', 'int64', '')
    """
    return dtype_name(dtype) or (dtype if dtype in BYTES else "")


def numel(shape: Sequence[int]) -> int:
    """Return the number of elements of a shape."""
    return math.prod(shape)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of one call, by their position in the schema of the operator."""

    facts: SliceFacts

    def has(self, at: int) -> bool:
        """Return whether an input is a tensor."""
        shapes, dtypes = self.facts.shapes, self.facts.dtypes
        if shapes is None or at >= len(shapes) or not _is_shape(shapes[at]):
            return False
        return bool(format_of(dtypes[at])) if at < len(dtypes) else bool(shapes[at])

    def shape(self, at: int, axes: int = 0) -> Shape:
        """Return the shape of a tensor; axes: expected number of axes, 0 for any.

        Raises:
            Unknown: the file has no such shape.
        """
        if not self.has(at):
            raise Unknown(f"the file has no shape for input {at + 1}")
        shape = tuple((self.facts.shapes or ())[at])
        if axes and len(shape) != axes:
            raise Unknown(f"expected an input {at + 1} with {axes} axes, got {len(shape)}")
        return shape

    def shapes(self, at: int) -> tuple[Shape, ...]:
        """Return the shapes of a list of tensors.

        Raises:
            Unknown: the file has no such shapes.
        """
        shapes = self.facts.shapes
        if shapes is None or at >= len(shapes) or not _is_list(shapes[at]):
            raise Unknown(f"the shapes of the tensors of input {at + 1} are missing")
        return tuple(shape for shape in shapes[at] if _is_shape(shape))

    def is_list(self, at: int) -> bool:
        """Return whether an input is a list of tensors with shapes."""
        shapes = self.facts.shapes
        return shapes is not None and at < len(shapes) and _is_list(shapes[at])

    def dtype(self, at: int = 0) -> str:
        """Return the data type of an input; fp32 if unknown."""
        dtypes = self.facts.dtypes
        if at < len(dtypes):
            return format_of(dtypes[at]) or _first_of_list(dtypes[at]) or "fp32"
        return "fp32"

    def bytes(self, at: int) -> float:
        """Return the bytes of a tensor."""
        return numel(self.shape(at)) * BYTES[self.dtype(at)]

    def tensors(self) -> tuple[int, ...]:
        """Return the positions of the tensors."""
        return tuple(index for index in range(len(self.facts.shapes or ())) if self.has(index))

    def strides(self, at: int) -> Shape:
        """Return the strides of a tensor, in elements; () if unknown."""
        strides = self.facts.strides
        return tuple(strides[at]) if at < len(strides) and _is_shape(strides[at]) else ()

    def text(self, at: int) -> str:
        """Return a value as text; "" if unknown."""
        return self.facts.values[at].strip() if at < len(self.facts.values) else ""

    def numbers(self, at: int, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Return a value that is a list of whole numbers."""
        found = _NUMBER.findall(self.text(at))
        return tuple(int(float(number)) for number in found) or default

    def number(self, at: int, default: int = 0) -> int:
        """Return a value that is a whole number."""
        return (self.numbers(at) or (default,))[0]

    def true(self, at: int) -> bool:
        """Return a value that is a Boolean; False if unknown."""
        return self.text(at).lower() in {"true", "1"}

    def truths(self, at: int, default: tuple[bool, ...] = ()) -> tuple[bool, ...]:
        """Return a value that is a list of Booleans."""
        words = re.findall(r"true|false|1|0", self.text(at).lower())
        return tuple(word in {"true", "1"} for word in words) or default

    def asked(self, at: int) -> str:
        """Return the data type that a value gives by number or name; "" for none."""
        text = self.text(at)
        if text.isdigit():
            return CODES[int(text)] if int(text) < len(CODES) else ""
        return format_of(text) if text else ""

    @property
    def says_values(self) -> bool:
        """Whether the file has values of inputs that are no tensors."""
        return any(self.facts.values)

    def largest(self) -> int:
        """Return the position of the largest tensor.

        Raises:
            Unknown: the file has no shapes.
        """
        places = self.tensors()
        if not places:
            raise Unknown("no shapes")
        return max(places, key=lambda at: numel(self.shape(at)))


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, list | tuple) and all(type(side) is int and side >= 0 for side in shape)


def _is_list(shape: Any) -> bool:
    return isinstance(shape, list | tuple) and len(shape) > 0 and isinstance(shape[0], list | tuple)


def _first_of_list(dtype: str) -> str:
    """Return the data type of the first tensor of a list, as in "TensorList<float>" or "[float, float]"."""
    found = re.search(r"[<\[]\s*['\"]?([\w:. ]+)", dtype)
    return format_of(found[1].strip()) if found else ""
