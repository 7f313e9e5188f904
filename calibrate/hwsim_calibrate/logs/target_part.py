"""The part to complete with the numbers of a log: `--part xeon-8480`, or a file."""

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
class TargetPart:
    """A part by name or path, completed by its class defaults.

    Args:
        kind: kind of the part.
        use: value of the key `use` that refers to it.
        model: the device or link.
    """

    kind: str
    use: str
    model: object

    def as_a(self, cls: type[T], tool: str) -> T:
        """Return the device or link if it is of a class.

        Raises:
            SpecError: The part is of another class.
        """
        if isinstance(self.model, cls):
            return self.model
        wanted = {Cpu: "a CPU", Gpu: "a GPU", Ethernet: "an Ethernet link", Disk: "a disk"}.get(cls, cls.__name__.lower())
        raise SpecError.of(
            None, f"{tool} measures {wanted}, but '{self.use}' is a part of kind {getattr(self.model, 'kind', self.kind)}"
        )


def find_target_part(name: str, kinds: Sequence[str], folder: Path) -> TargetPart:
    """Return the part of a name and of one of some kinds.

    Args:
        name: name in the library, or path of a file.
        kinds: accepted kinds.
        folder: folder of the file that will use the part.

    Raises:
        SpecError: The part does not exist, or has mistakes.
    """
    path = Path(name)
    if name.endswith((".yaml", ".yml")):
        if not path.is_file():
            raise SpecError.of(None, f"there is no file '{name}'")
        kind = read(path).text("kind") or ""
        if kind not in kinds:
            raise SpecError.of(None, f"'{name}' is a part of kind {kind or 'none'}: expected {' or '.join(kinds)}")
        use = os.path.relpath(path.resolve(), folder.resolve())
        use = use if use.startswith((".", "/")) else f"./{use}"
        return TargetPart(kind, use, _model(kind, str(path.resolve())))
    matches = [(kind, short) for kind in kinds for short in names(kind) if name in (short, f"{kind}/{short}")]
    if not matches:
        hint = did_you_mean(name, [short for kind in kinds for short in names(kind)])
        raise SpecError.of(None, f"the library has no {' or '.join(kinds)} called '{name}'", hint)
    kind, short = matches[0]
    return TargetPart(kind, short, _model(kind, short))


def _model(kind: str, use: str) -> object:
    """Return the device or link of a part; the other end of a link is an ideal computer."""
    part = {"kind": kind, "use": use}
    if kind == "cpu":
        return _machine({"part": part}).devices["part"].model
    if kind in ("ethernet", "infiniband", "wifi", "slingshot", "omnipath"):
        machine = _machine({"a": CPU, "b": CPU}, [{"between": ["a", "b"], **part}])
        return next(iter(machine.links)).model
    return _machine({"cpu": CPU, "part": part}).devices["part"].model


def _machine(parts: dict[str, object], links: list[dict[str, object]] | None = None) -> Machine:
    return load_machine({"hwsim": "machine/1", "parts": parts} | ({"links": links} if links else {}))
