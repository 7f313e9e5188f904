"""Conversion of PyTorch operators to ops by `hwsim.importers.aten`.

This module does not import PyTorch; it uses only the shape, format and strides of tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hwsim.importers.aten import FREE, meaning, plain
from hwsim.importers.recording import SliceFacts
from hwsim_calibrate.recording.operands import is_tensor
from hwsim_calibrate.recording.tape import Described, NoOp, Performed


def is_free(func: Any) -> bool:
    """Return whether an operator only creates a view or allocates a tensor."""
    return bool(func.namespace in ("prim", "profiler") or func.is_view or (plain(func._schema.name) in FREE))  # noqa: SLF001


def changed_tensors(func: Any, args: Sequence[Any], options: Mapping[str, Any]) -> list[Any]:
    """Return the tensors that an operator changes in place."""
    named = _arguments(func, args, options)
    return [tensor for argument, value in named if argument.alias_info is not None and argument.alias_info.is_write
            for tensor in tensors(value)]  # fmt: skip


def tensors(value: Any) -> list[Any]:
    """Return the tensors among arguments, in order."""
    if is_tensor(value):
        return [value]
    return [tensor for inner in value for tensor in tensors(inner)] if isinstance(value, tuple | list) else []


def facts_of(func: Any, args: Sequence[Any], options: Mapping[str, Any]) -> SliceFacts:
    """Return shapes, formats, strides and values of all inputs, in the order of the operator's schema."""
    values = [value for _, value in _arguments(func, args, options)]
    return SliceFacts(
        shapes=tuple(_shape(value) for value in values),
        dtypes=tuple(_dtype(value) for value in values),
        strides=tuple(tuple(value.stride()) if is_tensor(value) else () for value in values),
        values=tuple("" if tensors(value) or value is None else str(value) for value in values),
    )


def _arguments(func: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    for index, argument in enumerate(func._schema.arguments):  # noqa: SLF001 (no public access)
        yield argument, args[index] if index < len(args) else options.get(argument.name, argument.default_value)


def _shape(value: Any) -> Any:
    if is_tensor(value):
        return tuple(int(length) for length in value.shape)
    return tuple(tuple(item.shape) if is_tensor(item) else () for item in value) if tensors(value) else ()


def _dtype(value: Any) -> str:
    if is_tensor(value):
        return str(value.dtype).removeprefix("torch.")
    found = tensors(value)
    return f"TensorList<{_dtype(found[0])}>" if found else ""


def describe_operator(func: Any) -> Callable[[Performed], Described]:
    """Return the function that describes calls of an operator."""
    name = func._schema.name  # noqa: SLF001

    def describe(done: Performed) -> Described:
        return Described(*statement_of(name, facts_of(func, done.args, done.options)))

    return describe


def statement_of(name: str, facts: SliceFacts) -> tuple[str, dict[str, Any]]:
    """Return (kind, keys) of the op for an operator.

    Raises:
        NoOp: The operator has no corresponding op.
    """
    read = meaning(name, facts)
    if read.statement is None:
        raise NoOp(read.why or "no work")
    ((kind, keys),) = read.statement.items()
    return kind, dict(keys)
