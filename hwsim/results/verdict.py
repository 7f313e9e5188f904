"""Whether a run came to what its workload expects of it."""

from __future__ import annotations

from typing import Literal

from hwsim.records import dataclass

Status = Literal["met", "violated", "skipped"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One expectation: of what, what was wanted (in words), what came out (SI units), and why it was skipped if it was."""

    quantity: str
    wanted: str
    status: Status
    value: float | None = None
    reason: str = ""
