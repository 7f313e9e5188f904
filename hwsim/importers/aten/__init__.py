"""Translate PyTorch operators to statements of the workload language, from their names and input shapes.

    meaning("aten::addmm", SliceFacts(shapes=((512,), (256, 1024), (1024, 512)), ...)).statement
    {"matmul": {"m": 256, "n": 512, "k": 1024, "dtype": "fp32"}}

Variants of device libraries (`cudnn_convolution`, `mkldnn_convolution`) are translated like the plain operator. Operators that
only call others (`linear`, `conv2d`, `cross_entropy`, `autograd::...`) have a statement only if the called operators are not
recorded. Views cost nothing. A statement has no device.

**Source**: schemas of PyTorch 2 (`native_functions.yaml`).
"""

from __future__ import annotations

from typing import Final

from hwsim.importers.aten.arrays import ARRAYS, split_copy
from hwsim.importers.aten.exchanges import exchange
from hwsim.importers.aten.inputs import Inputs, Unknown, named
from hwsim.importers.aten.pointwise import POINTWISE, foreach
from hwsim.importers.aten.products import PRODUCTS, Reader, Statement
from hwsim.importers.recording import SliceFacts
from hwsim.records import dataclass

FREE: Final = named("free")
KINDS: Final = {
    "matmul": "matrix products", "convolution": "convolutions", "attention": "attention", "rnn": "recurrent", "norm": "norms",
    "pool": "pooling", "embedding": "look-ups", "softmax": "softmax", "reduce": "reductions", "elementwise": "elementwise",
    "compute": "elementwise", "layernorm": "norms",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Meaning:
    """The work of an operator.

    Args:
        statement: statement of the workload language, without a device; None if there is no work or no translation.
        why: reason why there is no translation; "" without work.
        kind: kind of work, for reports.
    """

    statement: Statement | None
    why: str = ""
    kind: str = "other"


NOTHING: Final = Meaning(None, "", "no work")


def plain(name: str) -> str:
    """Return the name of an operator without namespace and overload.

    >>> plain("aten::add_.Tensor"), plain("aten.mm.default"), plain("torch::autograd::AccumulateGrad")
    ('add_', 'mm', 'torch::autograd::AccumulateGrad')
    """
    if name.startswith(("aten::", "aten.", "prim::", "prims::", "prims.")):
        name = name.partition("::" if "::" in name else ".")[2]
    return name.partition(".")[0] if "::" not in name and " " not in name else name


def reader_of(name: str) -> Reader | None:
    """Return the translator of an operator by its plain name; None if there is none."""
    reader = PRODUCTS.get(name) or ARRAYS.get(name) or POINTWISE.get(name)
    if reader is None and name.startswith("_foreach_"):
        return foreach
    return split_copy if name == "split_with_sizes_copy" else reader


def meaning(name: str, facts: SliceFacts | None) -> Meaning:
    """Return the work of an operator, from its name (with or without namespace and overload) and facts."""
    short = plain(name)
    if short in FREE or name.startswith("profiler"):
        return NOTHING
    exchanged = exchange(name, facts or SliceFacts())
    if exchanged is not None:
        return Meaning(exchanged, "", "collectives") if exchanged else Meaning(None, "no size in the file", "collectives")
    reader = reader_of(short)
    if reader is None:
        return Meaning(None, "operator not supported")
    if facts is None or facts.shapes is None:
        return Meaning(None, "no shapes in the file", _kind_of(short))
    try:
        statement = reader(short, Inputs(facts))
    except Unknown as error:
        return Meaning(None, str(error), _kind_of(short))
    except (ValueError, IndexError, ZeroDivisionError):  # inputs do not match the schema: another operator of that name
        return Meaning(None, "its inputs do not match the schema of the operator", _kind_of(short))
    return Meaning(statement, "", kind_of(statement)) if statement else NOTHING


def kind_of(statement: Statement) -> str:
    """Return the kind of work of a statement, for reports."""
    return KINDS.get(next(iter(statement)), "collectives")


def _kind_of(short: str) -> str:
    if "conv" in short:
        return "convolutions"
    if short in PRODUCTS:
        return "attention" if "attention" in short else "recurrent" if "rnn" in short else "matrix products"
    if "norm" in short and short in ARRAYS and "linalg" not in short and short != "norm":
        return "norms"
    if "pool" in short:
        return "pooling"
    return "elementwise" if short in POINTWISE or short.startswith("_foreach") else "other"


__all__ = ["FREE", "NOTHING", "Meaning", "kind_of", "meaning", "plain", "reader_of"]
