"""Library calls as ops, and lists of calls as workloads for `hwsim simulate`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from hwsim.devices.work import LibraryCall
from hwsim.units import BYTES
from hwsim_calibrate.calls import DRAWN, REDUCTIONS

RUNTIME: Final[dict[str, Any]] = {"blocks": "all", "free": "scope"}  # call times include their overhead
PRODUCTS: Final = ("matmul", "matvec", "vecmat")
LOOKUPS: Final = ("take", "takerows", "takecolumns", "index", "index_cast", "indices", "put", "putindices", "add_at")


def workload_of(name: str, calls: Sequence[LibraryCall | float], *, device: str = "cpu") -> dict[str, Any]:
    """Return a workload of consecutive calls; a number is the time (s) of a call without an op."""
    return {"hwsim": "workload/1", "name": name, "runtime": dict(RUNTIME), "program": [*ops_of(calls, device)]}


def ops_of(calls: Iterable[LibraryCall | float], device: str = "cpu") -> Iterable[dict[str, Any]]:
    """Yield the op of each call."""
    before = ""
    for call in calls:
        if not isinstance(call, LibraryCall):
            yield {"busy": {"device": device, "time": f"{call:.9f} s"}}
            before = ""
            continue
        kind, keys = op_of(call)
        name = f"{call.function} {call.form}".strip().replace(" ", "-")
        among = {} if call.function == before else {"among_others": True}
        yield {kind: {"name": name, "device": device, **keys, **ages_of(call), **among}}
        before = call.function


def ages_of(call: LibraryCall) -> dict[str, Any]:
    """Return the key `since` of a call's op, the bytes used since the last use of each operand, if all are known."""
    ages = [operand.since for operand in call.operands]
    if call.function in LOOKUPS:  # the op lists table, index and result
        index, *table, result = ages
        ages = [*(table or [call.span]), index, result]
    return {"since": [f"{age:.0f} B" for age in ages if age is not None]} if ages and None not in ages else {}


def op_of(call: LibraryCall) -> tuple[str, dict[str, Any]]:
    """Return (kind, keys) of the op that lowers to a call."""
    form = {"form": call.form} if call.form else {}
    if call.function in PRODUCTS:
        return "matmul", _product(call) | form
    if call.function in LOOKUPS:
        length = max(call.count / max(call.lookups, 1.0), 1.0)
        return "access", {
            "function": call.function, "pattern": "random", "count": call.lookups, "bytes": f"{length * BYTES[call.dtype]:g} B",
            "working_set": f"{call.span:.0f} B", "dtype": call.dtype, "into": call.into,
        }  # fmt: skip
    keys: dict[str, Any] = {"function": call.function, **form, "dtype": call.dtype, "count": call.count}
    if call.rows > 1:
        keys["rows"] = call.rows
    keys["into"] = call.into
    if call.function in REDUCTIONS:
        return "reduce", keys
    if is_general(call):
        moved, made = call.moved, call.written
        return "compute", {
            "function": call.function, **form, "flop": f"{call.count:.0f} FLOP", "bytes": f"{moved:.0f} B",
            "result": f"{made:.0f} B", "dtype": call.dtype, "mix": "vector", "into": call.into,
            **({"rows": call.rows} if call.rows > 1 else {}),
        }  # fmt: skip
    if call.function in DRAWN:
        return "random", keys
    result = _result(call)
    inputs = sum(operand.role == "read" for operand in call.operands)
    return "elementwise", keys | {"inputs": inputs} | ({} if result == call.dtype else {"result": result})


def is_general(call: LibraryCall) -> bool:
    """Return whether the bytes of a call are not a multiple of its elements."""
    from hwsim_calibrate.calls import GENERAL

    return call.function in GENERAL


def _product(call: LibraryCall) -> dict[str, Any]:
    if call.product is not None:
        m, n, k, batch = call.product.m, call.product.n, call.product.k, call.product.batch
    else:
        rows, length = int(call.rows), int(call.count / call.rows)
        m, k, n = (rows, length, 1) if call.function == "matvec" else (1, rows, length)
        batch = 1
    keys: dict[str, Any] = {"m": m, "n": n, "k": k, "dtype": call.dtype, "into": call.into}
    return keys | ({"batch": batch} if batch > 1 else {})


def _result(call: LibraryCall) -> str:
    """Return the number format of the result, derived from its bytes per element."""
    written = [operand.bytes for operand in call.operands if operand.role != "read"]
    width = round(written[-1] / call.count) if written and call.count > 0 else BYTES[call.dtype]
    formats = {1: "bool", 2: "fp16", 4: "fp32", 8: "fp64" if call.dtype == "fp32" else "int64", 16: "complex128"}
    return call.dtype if width == BYTES[call.dtype] else formats.get(int(width), call.dtype)
