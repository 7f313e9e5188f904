"""The part that a log's numbers go into: `--part xeon-8480`, or a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from hwsim.api import load_machine
from hwsim.devices import Cpu, Gpu
from hwsim.devices.disk import Disk
from hwsim.links.ethernet import Ethernet
from hwsim.machine import Machine
from hwsim.records import dataclass
from hwsim.spec import SpecError, did_you_mean, names, read

T = TypeVar("T")
CPU = {"kind": "cpu", "class": "ideal", "cores": 1, "flop": {"fp64": "1 GFLOP/s"}, "memory": {"bandwidth": "1 GB/s"}}


@dataclass(frozen=True, slots=True)
class Base:
    """A part by name or path, with what its classes fill in.

    Args:
        use: what a file writes to use it.
        model: the device or link.
    """

    kind: str
    use: str
    model: object

    def as_a(self, cls: type[T], tool: str) -> T:
        """The part as one of this kind.

        Raises:
            SpecError: it is of another kind.
        """
        if isinstance(self.model, cls):
            return self.model
        wanted = {Cpu: "a cpu", Gpu: "a gpu", Ethernet: "Ethernet", Disk: "a disk"}.get(cls, cls.__name__.lower())
        raise SpecError.of(
            None, f"{tool} measures {wanted}, and '{self.use}' is a part of kind {getattr(self.model, 'kind', self.kind)}"
        )


def base_of(name: str, kinds: Sequence[str], folder: Path) -> Base:
    """The part of this name and of one of these kinds; folder: where the file that uses it will lie.

    Raises:
        SpecError: there is none, or it has mistakes.
    """
    path = Path(name)
    if name.endswith((".yaml", ".yml")):
        if not path.is_file():
            raise SpecError.of(None, f"there is no file '{name}'")
        kind = read(path).text("kind") or ""
        if kind not in kinds:
            raise SpecError.of(None, f"'{name}' is a part of kind {kind or 'none'}; it takes {' or '.join(kinds)}")
        use = os.path.relpath(path.resolve(), folder.resolve())
        use = use if use.startswith((".", "/")) else f"./{use}"
        return Base(kind, use, _model(kind, str(path.resolve())))
    matches = [(kind, short) for kind in kinds for short in names(kind) if name in (short, f"{kind}/{short}")]
    if not matches:
        hint = did_you_mean(name, [short for kind in kinds for short in names(kind)])
        raise SpecError.of(None, f"the library has no {' or '.join(kinds)} called '{name}'", hint)
    kind, short = matches[0]
    return Base(kind, short, _model(kind, short))


def _model(kind: str, use: str) -> object:
    """The device or link; its other end is an ideal computer."""
    part = {"kind": kind, "use": use}
    if kind == "cpu":
        return _machine({"it": part}).devices["it"].model
    if kind in ("ethernet", "infiniband", "wifi", "slingshot", "omnipath"):
        machine = _machine({"a": CPU, "b": CPU}, [{"between": ["a", "b"], **part}])
        return next(iter(machine.links)).model
    return _machine({"cpu": CPU, "it": part}).devices["it"].model


def _machine(parts: dict[str, object], links: list[dict[str, object]] | None = None) -> Machine:
    return load_machine({"hwsim": "machine/1", "parts": parts} | ({"links": links} if links else {}))
