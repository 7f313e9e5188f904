"""Scatter: the root sends each member its part.

    scatter: {among: gpu*, bytes: 160 MB, root: gpu0, algorithm: direct}

`bytes` are of all parts together.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.machine.libraries.operations import Operation
from hwsim.ops.exchange import RootedOp
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter(RootedOp):
    """The root sends each member its part."""

    kind: ClassVar[str] = "scatter"
    does: ClassVar[Operation] = "scatter"
