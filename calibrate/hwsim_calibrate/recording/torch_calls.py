"""An operator of PyTorch as an op of a workload: what `hwsim.importers.aten` makes of its shapes.

Nothing here imports PyTorch: tensors are asked for their shape, format and strides alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hwsim.importers.aten import FREE, meaning, plain
from hwsim.importers.recording import SliceFacts
from hwsim_calibrate.recording.operands import is_tensor
from hwsim_calibrate.recording.tape import Described, NoOp, Performed


def free(func: Any) -> bool:
    """Whether an operator does nothing but look at its arrays another way, or make room for one."""
    return bool(func.namespace in ("prim", "profiler") or func.is_view or (plain(func._schema.name) in FREE))  # noqa: SLF001


def changed(func: Any, args: Sequence[Any], options: Mapping[str, Any]) -> list[Any]:
    """The tensors that an operator changes in place."""
    named = _arguments(func, args, options)
    return [tensor for argument, value in named if argument.alias_info is not None and argument.alias_info.is_write
            for tensor in tensors(value)]  # fmt: skip


def tensors(value: Any) -> list[Any]:
    """The tensors among arguments, in order."""
    if is_tensor(value):
        return [value]
    return [tensor for inner in value for tensor in tensors(inner)] if isinstance(value, tuple | list) else []


def facts_of(func: Any, args: Sequence[Any], options: Mapping[str, Any]) -> SliceFacts:
    """Shapes, formats, strides and values of all inputs, in the order of the operator's schema."""
    values = [value for _, value in _arguments(func, args, options)]
    return SliceFacts(
        shapes=tuple(_shape(each) for each in values),
        dtypes=tuple(_dtype(each) for each in values),
        strides=tuple(tuple(each.stride()) if is_tensor(each) else () for each in values),
        values=tuple("" if tensors(each) or each is None else str(each) for each in values),
    )


def _arguments(func: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    for at, argument in enumerate(func._schema.arguments):  # noqa: SLF001 (the only place that names them)
        yield argument, args[at] if at < len(args) else options.get(argument.name, argument.default_value)


def _shape(value: Any) -> Any:
    if is_tensor(value):
        return tuple(int(each) for each in value.shape)
    return tuple(tuple(each.shape) if is_tensor(each) else () for each in value) if tensors(value) else ()


def _dtype(value: Any) -> str:
    if is_tensor(value):
        return str(value.dtype).removeprefix("torch.")
    found = tensors(value)
    return f"TensorList<{_dtype(found[0])}>" if found else ""


def described(func: Any) -> Callable[[Performed], Described]:
    """The function that describes calls of an operator."""
    name = func._schema.name  # noqa: SLF001

    def describe(done: Performed) -> Described:
        return Described(*statement_of(name, facts_of(func, done.args, done.options)))

    return describe


def statement_of(name: str, facts: SliceFacts) -> tuple[str, dict[str, Any]]:
    """(kind of op, its keys) of an operator.

    Raises:
        NoOp: hwsim has none for it.
    """
    read = meaning(name, facts)
    if read.statement is None:
        raise NoOp(read.why or "no work")
    ((kind, keys),) = read.statement.items()
    return kind, dict(keys)
