"""Table of the kinds of communication libraries. To add a kind, write a module here and add a line to `KINDS`."""

from __future__ import annotations

from typing import Final

from hwsim.machine.libraries.custom_allreduce import CustomAllReduce
from hwsim.machine.libraries.fabric import Fabric
from hwsim.machine.libraries.mpi import Mpi
from hwsim.machine.libraries.nccl import Nccl
from hwsim.machine.libraries.overheads import Overheads

Library = Fabric | Mpi | Nccl | Overheads | CustomAllReduce

KINDS: Final[dict[str, type[Library]]] = {
    "fabric": Fabric, "mpi": Mpi, "nccl": Nccl, "overheads": Overheads, "own": CustomAllReduce,
}  # fmt: skip
