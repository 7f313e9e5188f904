"""Options for information that logs do not contain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim_calibrate.logs.target_part import TargetPart


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Options of `hwsim import`.

    Args:
        part: the part to complete with the numbers; None: they become a new part.
        sockets: CPU sockets that were busy at the same time; 0: as in the log, else 1.
        model: name of the served model in the library; "": as in the log.
        collective: the collective to import, and the collective of rows without a title; "": as in the log.
    """

    part: TargetPart | None = None
    sockets: int = 0
    model: str = ""
    collective: str = ""
