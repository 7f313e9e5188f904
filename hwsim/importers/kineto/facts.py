"""Facts of events from their `args`. Equal `args` share one entry, which is looked up by their serialized bytes."""

from __future__ import annotations

import re
from marshal import dumps
from typing import Any, Final, TypedDict

from hwsim.importers.collectives import of_kernel as collective_of_kernel
from hwsim.importers.collectives import of_metadata, of_tensors
from hwsim.importers.columns import SliceColumns
from hwsim.importers.recording import SliceFacts

_SAID: Final = (
    "Collective name", "In msg nelems", "Out msg nelems", "Group size", "dtype", "Process Group Name", "Process Group Ranks",
    "Global rank start", "Global rank stride", "Src Rank", "Dst Rank",
)  # fmt: skip
DEEPEST: Final = 20  # nesting depth of lists of tensors
_WAY: Final = re.compile(r"\b([HDPA]to[HDPA])\b")
_WAITS: Final = ("cuda_sync_kind", "wait_on_stream", "wait_on_cuda_event_record_corr_id", "stream")
_TENSORS: Final = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
_form: Final[Any] = TypedDict
_ARGS: Final = _form(
    "_ARGS", dict.fromkeys((*_SAID, *_WAITS, *_TENSORS, "bytes", "correlation", "device", "name"), Any), total=False
)
_KEYS: Final = dict.fromkeys(("ph", "cat", "name", "pid", "tid", "ts", "dur"), Any)
EVENT: Final[Any] = _form("EVENT", _KEYS | {"args": _ARGS}, total=False)  # the keys in use


def of_op(columns: SliceColumns, args: dict[str, Any], mark: str = "") -> int:
    """Return the index of the facts of an op; -1 if its inputs were not recorded.

    Args:
        mark: annotation `nccl:NAME`, which describes a collective before PyTorch 2.2.
    """
    dims = args.get("Input Dims")
    is_collective = bool(mark) or "Collective name" in args
    if dims is None and not is_collective:
        return -1
    inputs = [args.get(name) for name in _TENSORS]
    key = dumps((mark, inputs, [args.get(name) for name in _SAID]) if is_collective else inputs, 2)
    index = columns.facts_of.get(key)
    if index is not None:
        return index
    collective = of_metadata(args) or of_tensors(mark, dims, inputs[1]) if is_collective else None
    return columns.fact(SliceFacts(shapes(dims), *_texts(inputs), collective=collective), key)


def of_kernel(columns: SliceColumns, name: str, args: dict[str, Any]) -> int:
    """Return the index of the facts of a collective kernel; -1 for other kernels."""
    collective = of_metadata(args) if "Collective name" in args else None
    collective = collective or (collective_of_kernel(name) if "ccl" in name else None)
    return -1 if collective is None else columns.fact(SliceFacts(collective=collective))


def of_copy(columns: SliceColumns, name: str, args: dict[str, Any]) -> int:
    """Return the index of the facts of a copy or memset: bytes and direction."""
    size = args.get("bytes", 0)
    key = size, name
    index = columns.facts_of.get(key)
    if index is not None:
        return index
    if not isinstance(size, int) or size < 0:
        raise ValueError(f"expected a number of bytes, got {str(size)[:40]}")
    way = _WAY.search(name)
    return columns.fact(SliceFacts(bytes=size, kind=way[1] if way else ""), key)


def of_wait(columns: SliceColumns, args: dict[str, Any]) -> int:
    """Return the index of the facts of a synchronization: the waiting stream and its event."""
    kind, stream, link, _ = (args.get(name) for name in _WAITS)
    return columns.fact(SliceFacts(waits_on_stream=_known(stream), waits_on_link=_known(link), kind=str(kind or "")))


def _known(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 2**31 else -1


def shapes(value: Any) -> Any:
    """Return the shapes of a list of inputs as tuples; None if the value is no list."""
    return tuple(map(shape, value)) if isinstance(value, list) else None


def shape(value: Any, depth: int = 0) -> Any:
    """Return the shape of a tensor or the shapes of a list of tensors; None for other values."""
    if not isinstance(value, list):
        return None
    if all(type(size) is int and size >= 0 for size in value):
        return tuple(value)
    if depth > DEEPEST:
        raise ValueError("shapes are nested too deeply")
    return tuple(shape(member, depth + 1) for member in value)


def _texts(inputs: list[Any]) -> tuple[tuple[str, ...], Any, tuple[str, ...]]:
    """Return data types, strides and values."""
    _, dtypes, strides, values = inputs
    return (
        tuple(str(dtype) for dtype in dtypes) if isinstance(dtypes, list) else (),
        shapes(strides) or (),
        tuple(str(value) for value in values) if isinstance(values, list) else (),
    )
