"""All-reduce: every member ends with the sum of what all have.

    allreduce: {among: gpu*, bytes: 160 MB, algorithm: ring}

With `overlaps: backward`, an op in pieces, the gradients of each piece go off as soon as it has ended.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.machine.libraries.operations import Operation
from hwsim.ops.exchange import ExchangeOp
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Allreduce(ExchangeOp):
    """Every member ends with the sum of what all have."""

    kind: ClassVar[str] = "allreduce"
    does: ClassVar[Operation] = "all-reduce"
