"""Table of the kinds of communication libraries. To add a kind, write a module here and add a line to `KINDS`."""

from __future__ import annotations

from typing import Final

from hwsim.machine.libraries.mpi import Mpi
from hwsim.machine.libraries.nccl import Nccl
from hwsim.machine.libraries.overheads import Overheads
from hwsim.machine.libraries.own import Own

Library = Mpi | Nccl | Overheads | Own

KINDS: Final[dict[str, type[Library]]] = {"mpi": Mpi, "nccl": Nccl, "overheads": Overheads, "own": Own}
