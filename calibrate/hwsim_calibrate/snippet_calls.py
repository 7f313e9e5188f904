"""Conversion between snippets, cases of a suite, and the library calls that snippets make."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Final

import numpy as np

from hwsim.devices.work import LibraryCall as Modelled
from hwsim.devices.work import MatmulShape, Operand, Role
from hwsim_calibrate.calls import amounts_of
from hwsim_calibrate.case import CannotMeasure, Case
from hwsim_calibrate.clocks import Call
from hwsim_calibrate.snippet_inputs import Inputs
from hwsim_calibrate.snippets import SNIPPETS
from hwsim_calibrate.store import Param
from hwsim_calibrate.suites.arrays import DTYPES


def snippet_case(name: str, inputs: Inputs, suite: str = "kernels") -> Case:
    """Return the case of a snippet; its params describe the recorded call.

    Raises:
        CannotMeasure: The snippet does not exist, or is not a single numpy call.
    """
    if name not in SNIPPETS:
        raise CannotMeasure(f"there is no kernel '{name}'")
    build = SNIPPETS[name]
    call = recorded_call(lambda: build(inputs))
    words: dict[str, Param] = {"n": inputs.n, "dtype": inputs.dtype}
    words |= {"words": " ".join(inputs.words)} if inputs.words else {}
    words |= {"table": inputs.table} if inputs.table != Inputs.__dataclass_fields__["table"].default else {}
    case = f"{name} " + " ".join(f"{key}={value}" for key, value in words.items())
    words |= params_of(call)
    return Case(suite, name, words, amounts_of(call), lambda _: build(inputs), samples=3, seconds=6e-4, name=case)


def recorded_call(make: Callable[[], Call]) -> Modelled:
    """Return the single library call of a step.

    Raises:
        CannotMeasure: The step makes several calls, or none that hwsim models.
    """
    from hwsim_calibrate.recording.numpy_patches import steps_of

    with ExitStack():
        steps = steps_of(make, warm_ups=0, timed=False)
    calls = [step.op.call for step in steps if step.op.call is not None and step.op.call.count > 0]
    if len(calls) != 1 or any(step.op.reason for step in steps):
        reasons = [step.op.reason or step.name for step in steps]
        raise CannotMeasure(f"not a single numpy call: {', '.join(reasons)}")
    return calls[0]


def params_of(call: Modelled) -> dict[str, Param]:
    """Return a call as params of a row."""
    reads = [operand.bytes for operand in call.operands if operand.role == "read"]
    params: dict[str, Param] = {
        "function": call.function, "form": call.form, "format": call.dtype, "steps": call.count, "rows": call.rows,
        "reads": tuple(round(size) for size in reads), "writes": round(call.written), "to": call.into,
    }  # fmt: skip
    if call.product is not None:
        params["product"] = (call.product.m, call.product.n, call.product.k, call.product.batch)
    return params | ({"lookups": call.lookups, "span": call.span} if call.lookups else {})


def call_of_params(params: Mapping[str, Param]) -> Modelled:
    """Return the call that the params of a row describe."""
    given: Any = params
    reads = tuple(Operand(float(size), "read") for size in given["reads"])
    role: Role = "update" if given["to"] == "self" else "write"
    return Modelled(
        function=given["function"], form=given["form"], dtype=given["format"], count=float(given["steps"]),
        rows=float(given["rows"]), into=given["to"],
        operands=(*reads, Operand(float(given["writes"]), role)) if given["writes"] else reads,
        product=MatmulShape(*given["product"]) if "product" in given else None,
        lookups=float(given.get("lookups", 0.0)), span=float(given.get("span", 0.0)),
    )  # fmt: skip


def snippet_of(call: Modelled) -> tuple[str, Inputs] | None:
    """Return the snippet that makes a call and its inputs, or None if there is none."""
    if call.function in SIMPLE and (call.into != "new" or not call.form):
        return None
    name = "crossed" if (call.function, call.form) == ("fill", "across") else call.function
    if name not in SNIPPETS or call.dtype not in DTYPES:
        return None
    count, words, width = max(int(call.count), 1), tuple(call.form.split()), np.dtype(DTYPES[call.dtype]).itemsize
    if call.lookups:
        return name, Inputs(int(call.lookups), call.dtype, words, max(int(call.span / width), 1))
    if name == "searchsorted":
        values = max(int(call.written / np.dtype(np.int64).itemsize), 1)
        return name, Inputs(values, call.dtype, words, max(int(call.operands[0].bytes / width) - values, 2))
    if name == "convolve":
        return name, Inputs(max(int(call.rows), 1), call.dtype, words, max(round(count / (2 * call.rows)), 1))
    if call.rows > 1 and name in _ALONG and {"rows", "across"} & set(words):
        return name, Inputs(count, call.dtype, words, max(round(count / call.rows), 1))
    if call.rows > 1 and name not in ("norm", "fft2", "rfft2", "ifft2"):
        return None
    if "tall" in words:
        return f"tall {name}", Inputs(max(round(math.cbrt(count / 12)), 1), call.dtype, words)
    return name, Inputs(_elements(name, count, words), call.dtype, words)


def _elements(name: str, count: int, words: tuple[str, ...]) -> int:
    """Return `n` of a snippet from the number of operations of its call."""
    if name == "lstsq":
        return max(round(math.cbrt(count / 4)), 1)
    if name == "lexsort":  # two keys
        return _solve_n_log_n(count, 2.0)
    if name == "outer":
        return max(math.isqrt(count), 1)
    if name in _CUBED:
        return max(round(math.cbrt(count)), 1)
    if name in _TRANSFORMED:
        return _solve_n_log_n(count, 5.0)
    if name == "einsum":
        return max(round((count / 2) ** (2 / 3)) if "outer" in words else count if "one" in words else count // 2, 1)
    return max(count // 2, 1) if name in ("repeat", "tile") else count


_ALONG: Final = frozenset({"median", "percentile", "partition", "argpartition"})


def _solve_n_log_n(count: float, times: float) -> int:
    """Return n from count = times n log2 n."""
    n = float(count)
    for _ in range(20):
        n = count / (times * math.log2(max(n, 2.0)))
    return max(round(n), 1)


SIMPLE: Final = ("copy", "sin", "cos", "tan")  # kernels with their own cases, except for some forms
_CUBED: Final = frozenset({
    "inv", "det", "slogdet", "cholesky", "qr", "eig", "eigh", "eigvals", "eigvalsh", "svd", "pinv", "matrix_rank",
    "solve", "matrix_power",
})  # fmt: skip
_TRANSFORMED: Final = frozenset({"fft", "ifft", "rfft", "irfft", "fft2", "rfft2", "ifft2"})
