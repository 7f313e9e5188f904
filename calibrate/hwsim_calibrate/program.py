"""Recorded calls as a workload: what a file of it would say, for `hwsim simulate` on a machine that was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from hwsim.devices.calls import Call
from hwsim.units import BYTES
from hwsim_calibrate.fit.calls import DRAWN, REDUCTIONS

RUNTIME: Final[dict[str, Any]] = {"blocks": "all", "free": "scope"}  # a call's own time has its start in it
PRODUCTS: Final = ("matmul", "matvec", "vecmat")
LOOKUPS: Final = ("take", "takerows")


def workload_of(name: str, calls: Sequence[Call], *, device: str = "cpu", notes: str = "") -> dict[str, Any]:
    """A workload whose program is these calls, one after another."""
    said = {"notes": notes} if notes else {}
    return {"hwsim": "workload/1", "name": name, **said, "runtime": dict(RUNTIME), "program": [*ops_of(calls, device)]}


def ops_of(calls: Iterable[Call], device: str = "cpu") -> Iterable[dict[str, Any]]:
    """The op of each call."""
    before = ""
    for call in calls:
        kind, keys = op_of(call)
        among = {} if call.function == before else {"among_others": True}
        yield {kind: {"name": _name(call), "device": device, **keys, **among}}
        before = call.function


def _name(call: Call) -> str:
    return f"{call.function} {call.form}".strip().replace(" ", "-")


def op_of(call: Call) -> tuple[str, dict[str, Any]]:
    """(kind of op, its keys) that lower to this call again."""
    since = [operand.since for operand in call.operands]
    ages = {"since": [f"{age:.0f} B" for age in since if age is not None]} if since and None not in since else {}
    if call.function in PRODUCTS:
        return "matmul", _product(call) | ages
    form = {"form": call.form} if call.form else {}
    if call.function in LOOKUPS:
        return "access", _lookup(call)
    common: dict[str, Any] = {"function": call.function, **form, "dtype": call.dtype, "count": call.count}
    if call.rows > 1:
        common["rows"] = call.rows
    common["into"] = call.into
    if call.function in REDUCTIONS:
        return "reduce", common | ages
    if call.function in DRAWN:
        return "random", common | ages
    inputs = sum(operand.role == "read" for operand in call.operands)
    result = {} if (made := _result(call)) == call.dtype else {"result": made}
    return "elementwise", common | {"inputs": inputs} | result | ages


def _product(call: Call) -> dict[str, Any]:
    if call.product is not None:
        m, n, k, batch = call.product.m, call.product.n, call.product.k, call.product.batch
    else:
        rows, length = int(call.rows), int(call.count / call.rows)
        m, k, n = (rows, length, 1) if call.function == "matvec" else (1, rows, length)
        batch = 1
    found: dict[str, Any] = {"m": m, "n": n, "k": k, "dtype": call.dtype, "into": call.into}
    return found | ({"batch": batch} if batch > 1 else {}) | ({"form": call.form} if call.form else {})


def _lookup(call: Call) -> dict[str, Any]:
    width = BYTES[call.dtype]
    length = max(call.count / max(call.lookups, 1.0), 1.0)
    by_role = [operand for operand in call.operands if operand.role == "read"]
    written = [operand for operand in call.operands if operand.role == "write"]
    index, result = by_role[0].since, written[0].since if written else None
    table = by_role[1].since if len(by_role) > 1 else None
    found: dict[str, Any] = {
        "function": call.function, "pattern": "random", "count": call.lookups, "bytes": f"{length * width:g} B",
        "working_set": f"{call.span:.0f} B", "dtype": call.dtype, "into": call.into,
    }  # fmt: skip
    if index is not None and result is not None:
        found["since"] = [f"{each:.0f} B" for each in (table if table is not None else call.span, index, result)]
    return found


def _result(call: Call) -> str:
    """The type of what is written, by its bytes."""
    written = [operand.bytes for operand in call.operands if operand.role != "read"]
    if not written or call.count <= 0:
        return call.dtype
    width = round(written[-1] / call.count)
    same = BYTES[call.dtype] == width
    return (
        call.dtype
        if same
        else {1: "bool", 8: "int64" if call.dtype != "fp32" else "fp64", 4: "fp32", 2: "fp16"}.get(width, call.dtype)
    )
