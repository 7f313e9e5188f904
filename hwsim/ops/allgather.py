"""All-gather: every member ends with the parts of all.

    allgather: {among: gpu*, bytes: 160 MB}

`bytes` are of all parts together.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.machine.libraries.operations import Operation
from hwsim.ops.exchange import ExchangeOp
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Allgather(ExchangeOp):
    """Every member ends with the parts of all."""

    kind: ClassVar[str] = "allgather"
    does: ClassVar[Operation] = "all-gather"
