"""Answers of a user to what logs leave open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim_calibrate.logs.base import Base


@dataclass(frozen=True, slots=True)
class Ask:
    """Answers of the command line.

    Args:
        part: the part that the numbers go into; None: they make one of their own.
        sockets: CPU sockets that were busy together; 0: as the log says, else one.
        model: name of the model that was served, in the library; "": as the log has it.
        collective: the one that is taken of several, and that rows without a title are of; "": as the log says.
    """

    part: Base | None = None
    sockets: int = 0
    model: str = ""
    collective: str = ""
