"""Clusters of several equal nodes without a machine file, with their NICs on one switch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from hwsim.devices import Nic
from hwsim.formats import format_quantity
from hwsim.functions.files import machine_of, machine_with
from hwsim.machine import Machine
from hwsim.models import Cluster, UnequalCluster, cluster_of
from hwsim.spec import SpecError, Warning, find, tree_of
from hwsim.spec.memo import memoize_result


def cluster_with(source: str, settings: Mapping[str, str], nodes: int = 0) -> tuple[Cluster, str, tuple[Warning, ...]]:
    """Return the GPU cluster of a machine or of several equal machines, its name, and the warnings of one machine.

    Two nodes are built and represent all, because each NIC has its own switch port.

    Raises:
        SpecError: the machine has mistakes, or cannot be a node.
        NotAlike, NoRoute, CannotCollect: its GPUs are not a homogeneous cluster.
    """
    machine = machine_with(source, settings)
    name = machine.name or ("machine" if source == "-" or "\n" in source else Path(source).stem)
    if nodes <= 1:
        return memoize_result("clusters", (machine,), lambda: cluster_of(machine)), name, machine.warnings
    if source == "-" or "\n" in source:
        raise SpecError.of(None, "--nodes requires a machine in a file or in the library, not standard input or a text")
    if (cluster := cluster_of(machine)).per_node < cluster.gpus:
        raise UnequalCluster(f"--nodes repeats a single node or NVLink domain, but {name} has several")
    node = {"kind": "machine", "use": str(find("machine", source).absolute()), "count": 2}
    rate = format_quantity(_rate(machine, name), "B/s", 17)
    cards = sorted({re.sub(r"\d+", "*", card) for card in machine.devices_of("nic")})
    links = [{"between": [f"node*.{card}", "fabric"], "kind": "infiniband", "rate": rate} for card in cards]
    tree = tree_of({"hwsim": "machine/1", "parts": {"node": node, "fabric": {"kind": "switch"}}, "links": links})
    inside = {f"machine.node.{path.removeprefix('machine.')}": value for path, value in settings.items()}
    pair = cluster_of(machine_of(tree, inside))
    moved = tuple((move, tuple(replace(end, gpus=nodes * pair.per_node) for end in ends)) for move, ends in pair.moved)
    return replace(pair, gpus=nodes * pair.per_node, moved=moved, scores=machine.scores), f"{nodes} x {name}", machine.warnings


def _rate(machine: Machine, name: str) -> float:
    """Return the largest bandwidth of the machine's NICs (B/s)."""
    models = [machine.device(name).model for name in machine.devices_of("nic")]
    rates = {model.bandwidth for model in models if isinstance(model, Nic)}
    if not rates:
        raise SpecError.of(None, f"{name} has no NIC to another node", "write a machine file with its network")
    return max(rates)
