"""A machine of several nodes without a file: so many of one, their network cards on one switch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from hwsim.cli.files import machine_of, machine_with
from hwsim.devices import Nic
from hwsim.machine import Machine
from hwsim.models import Cluster, NotAlike, cluster_of
from hwsim.spec import Mistake, SpecError, Warning, find, tree_of
from hwsim.units import format_quantity


def cluster_with(source: str, settings: Mapping[str, str], nodes: int = 0) -> tuple[Cluster, str, tuple[Warning, ...]]:
    """The cluster that the GPUs of a machine are, or of so many such machines, its name, and the warnings of such a machine.

    What two nodes say of each other holds for all: each card has the switch's port to itself.

    Raises:
        SpecError: mistakes of the machine, or it cannot be a node.
        NotAlike, NoRoute, CannotCollect: its GPUs are no cluster.
    """
    one = machine_with(source, settings)
    name = one.name or ("machine" if source == "-" else Path(source).stem)
    if nodes <= 1:
        return cluster_of(one), name, one.warnings
    if source == "-":
        raise SpecError([Mistake(None, "--nodes repeats a machine of a file or of the library, not standard input")])
    if len({one.device(gpu).node for gpu in one.devices_of("gpu")}) > 1:
        raise NotAlike(f"--nodes repeats a single node, but {name} has several")
    node = {"kind": "machine", "use": str(find("machine", source).absolute()), "count": 2}
    rate = format_quantity(_rate(one, name), "B/s", 17)
    link = {"between": ["node*.nic*", "fabric"], "kind": "infiniband", "rate": rate}
    tree = tree_of({"hwsim": "machine/1", "parts": {"node": node, "fabric": {"kind": "switch"}}, "links": [link]})
    inside = {f"machine.node.{path.removeprefix('machine.')}": value for path, value in settings.items()}
    pair = cluster_of(machine_of(tree, inside, source))
    return replace(pair, gpus=nodes * pair.per_node), f"{nodes} x {name}", one.warnings


def _rate(machine: Machine, name: str) -> float:
    """B/s of its network cards."""
    models = [machine.device(each).model for each in machine.devices_of("nic")]
    rates = {model.bandwidth for model in models if isinstance(model, Nic)}
    if not rates:
        raise SpecError([Mistake(None, f"{name} has no network card to another node", "write a machine with its fabric")])
    return max(rates)
