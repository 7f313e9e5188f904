"""Measured numbers by name: machines/parts/nccl and machines/parts/mpi."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

from hwsim.machine.libraries.mpi import Mpi
from hwsim.machine.libraries.nccl import Nccl
from hwsim.spec import Mistakes, decode, find, read, resolve

Measured = TypeVar("Measured", Nccl, Mpi)
_ENTRY = frozenset({"hwsim", "kind", "name", "notes", "use"})


@cache
def measured(model: type[Measured], name: str) -> Measured:
    """The numbers of a machine by name, or of a file.

    Raises:
        SpecError: there is no such file, or it has mistakes.
    """
    mistakes = Mistakes()
    tree = resolve(read(find(model.kind, name)), mistakes, kind=model.kind)
    mistakes.raise_if_any()
    found = decode(tree, model, mistakes, ignore=_ENTRY, sourced=True)
    mistakes.raise_if_any()
    if found is None:
        raise TypeError(f"{name} is no {model.kind}")
    return found
