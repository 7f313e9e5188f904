"""Broadcast: what the root has comes to all.

    broadcast: {among: gpu*, bytes: 160 MB, root: gpu0}

`bytes` are what the root has.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.machine.libraries.operations import Operation
from hwsim.ops.exchange import RootedOp
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Broadcast(RootedOp):
    """What the root has comes to all."""

    kind: ClassVar[str] = "broadcast"
    does: ClassVar[Operation] = "broadcast"
