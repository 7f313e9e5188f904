"""Every kind of library that a machine may say it has. A new one is a new file here and a line in the table."""

from __future__ import annotations

from typing import Final

from hwsim.machine.libraries.mpi import Mpi
from hwsim.machine.libraries.nccl import Nccl
from hwsim.machine.libraries.overheads import Overheads
from hwsim.machine.libraries.own import Own

Library = Mpi | Nccl | Overheads | Own

KINDS: Final[dict[str, type[Library]]] = {"mpi": Mpi, "nccl": Nccl, "overheads": Overheads, "own": Own}
