"""All-to-all: every member sends each other one its own part, as experts of a mixture do with tokens.

    alltoall: {among: gpu*, bytes: 64 MB, algorithm: pairwise}

`bytes` are what one member holds before it.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.machine.libraries.operations import Operation
from hwsim.ops.exchange import ExchangeOp
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Alltoall(ExchangeOp):
    """Every member sends each other one its own part, as experts of a mixture do with tokens."""

    kind: ClassVar[str] = "alltoall"
    does: ClassVar[Operation] = "all-to-all"
