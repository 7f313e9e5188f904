"""Reduce-scatter: every member ends with its part of the sum.

    reduce-scatter: {among: gpu*, bytes: 160 MB}

`bytes` are of all parts together.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.machine.libraries.operations import Operation
from hwsim.ops.exchange import ExchangeOp
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReduceScatter(ExchangeOp):
    """Every member ends with its part of the sum."""

    kind: ClassVar[str] = "reduce-scatter"
    does: ClassVar[Operation] = "reduce-scatter"
