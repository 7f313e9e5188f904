"""The inputs of an operator of PyTorch, as profilers and recorders write them: shapes, number formats, values as text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from hwsim.importers.collectives import dtype_name
from hwsim.importers.recording import Facts, Shape
from hwsim.records import dataclass
from hwsim.units import BYTES

OPERATORS: Final[Mapping[str, Any]] = yaml.safe_load(Path(__file__).with_name("operators.yaml").read_text(encoding="utf-8"))
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?", re.IGNORECASE)
# numbers of `torch.dtype` as they stand among values (ScalarType of c10)
CODES: Final = (
    "int8", "int8", "int16", "int32", "int64", "fp16", "fp32", "fp64", "", "complex64", "complex128", "bool",
    "int8", "int8", "int32", "bf16",
)  # fmt: skip


def named(group: str) -> frozenset[str]:
    """The operators of a group of `operators.yaml`."""
    return frozenset(OPERATORS[group].split())


class Unknown(ValueError):
    """A fact that the file does not say, in words."""


def format_of(dtype: str) -> str:
    """hwsim's name of a number format; "" of what is no tensor.

    >>> format_of("c10::BFloat16"), format_of("torch.float32"), format_of("long int"), format_of("Scalar")
    ('bf16', 'fp32', 'int64', '')
    """
    return dtype_name(dtype) or (dtype if dtype in BYTES else "")


def numel(shape: Sequence[int]) -> int:
    """Numbers in an array of this shape."""
    return math.prod(shape)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of one call, by their place in the operator's schema."""

    facts: Facts

    def has(self, at: int) -> bool:
        """Whether it is a tensor."""
        shapes, dtypes = self.facts.shapes, self.facts.dtypes
        if shapes is None or at >= len(shapes) or not _is_shape(shapes[at]):
            return False
        return bool(format_of(dtypes[at])) if at < len(dtypes) else bool(shapes[at])

    def shape(self, at: int, axes: int = 0) -> Shape:
        """The shape of a tensor, of that many axes if given.

        Raises:
            Unknown: the file does not say.
        """
        if not self.has(at):
            raise Unknown(f"no shape of input {at + 1}")
        shape = tuple((self.facts.shapes or ())[at])
        if axes and len(shape) != axes:
            raise Unknown(f"input {at + 1} has {len(shape)} axes, not {axes}")
        return shape

    def shapes(self, at: int) -> tuple[Shape, ...]:
        """The shapes of a list of tensors.

        Raises:
            Unknown: the file does not say.
        """
        shapes = self.facts.shapes
        if shapes is None or at >= len(shapes) or not _is_list(shapes[at]):
            raise Unknown(f"no shapes of the tensors of input {at + 1}")
        return tuple(shape for shape in shapes[at] if _is_shape(shape))

    def is_list(self, at: int) -> bool:
        """Whether it is a list of tensors with their shapes."""
        shapes = self.facts.shapes
        return shapes is not None and at < len(shapes) and _is_list(shapes[at])

    def dtype(self, at: int = 0) -> str:
        """The number format of an input; fp32 where nothing says."""
        dtypes = self.facts.dtypes
        if at < len(dtypes):
            return format_of(dtypes[at]) or _first_of_list(dtypes[at]) or "fp32"
        return "fp32"

    def bytes(self, at: int) -> float:
        """Bytes of a tensor."""
        return numel(self.shape(at)) * BYTES[self.dtype(at)]

    def tensors(self) -> tuple[int, ...]:
        """Places of the tensors."""
        return tuple(index for index in range(len(self.facts.shapes or ())) if self.has(index))

    def strides(self, at: int) -> Shape:
        """Elements from one to the next along each axis; () if the file does not say."""
        strides = self.facts.strides
        return tuple(strides[at]) if at < len(strides) and _is_shape(strides[at]) else ()

    def text(self, at: int) -> str:
        """A value as it stands; "" if the file does not say."""
        return self.facts.values[at].strip() if at < len(self.facts.values) else ""

    def numbers(self, at: int, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """A list of whole numbers."""
        found = _NUMBER.findall(self.text(at))
        return tuple(int(float(each)) for each in found) or default

    def number(self, at: int, default: int = 0) -> int:
        """A whole number."""
        return (self.numbers(at) or (default,))[0]

    def true(self, at: int) -> bool:
        """A truth value; false where none is stated."""
        return self.text(at).lower() in {"true", "1"}

    def truths(self, at: int, default: tuple[bool, ...] = ()) -> tuple[bool, ...]:
        """A list of truth values."""
        words = re.findall(r"true|false|1|0", self.text(at).lower())
        return tuple(word in {"true", "1"} for word in words) or default

    def asked(self, at: int) -> str:
        """The number format that a value names by its number or its word; "" if it names none."""
        text = self.text(at)
        if text.isdigit():
            return CODES[int(text)] if int(text) < len(CODES) else ""
        return format_of(text) if text else ""

    @property
    def says_values(self) -> bool:
        """Whether the file has the values of inputs that are no tensors."""
        return any(self.facts.values)

    def largest(self) -> int:
        """Place of the largest tensor.

        Raises:
            Unknown: the file has no shapes.
        """
        places = self.tensors()
        if not places:
            raise Unknown("no shapes")
        return max(places, key=lambda at: numel(self.shape(at)))


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, list | tuple) and all(type(each) is int and each >= 0 for each in shape)


def _is_list(shape: Any) -> bool:
    return isinstance(shape, list | tuple) and len(shape) > 0 and isinstance(shape[0], list | tuple)


def _first_of_list(dtype: str) -> str:
    """The number format of the first tensor of a list, where a recorder writes it: "TensorList<float>", "[float, float]"."""
    found = re.search(r"[<\[]\s*['\"]?([\w:. ]+)", dtype)
    return format_of(found[1].strip()) if found else ""
