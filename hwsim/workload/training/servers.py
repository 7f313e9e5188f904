"""Servers that keep the parameters of a training: where they are, how gradients reach them, and their updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hwsim.devices import Cpu, Gpu, Sockets, Work
from hwsim.graph.builder import OpRef
from hwsim.machine import Machine
from hwsim.machine.libraries.operations import CannotCollect
from hwsim.workload.training.workers import Ops

if TYPE_CHECKING:
    from hwsim.collectives.algorithms.parameter_server import ParameterServer


def servers_near(machine: Machine, names: Sequence[str], device: str) -> tuple[str, ...]:
    """The devices that keep the parameters, seen from the node of a device.

    Raises:
        UnknownName: there are none of those names.
    """
    node = machine.device(device).node
    servers: list[str] = []
    for name in names:
        try:
            servers.append(machine.one(name, node))
        except ValueError:  # several: all of them
            servers += machine.select([name], node)
    return tuple(dict.fromkeys(servers))


def among(servers: tuple[str, ...], devices: Sequence[str]) -> ParameterServer:
    """The algorithm by which devices exchange with servers that are the first of them, or are other devices.

    Raises:
        CannotCollect: some of the servers are among the devices and some are not, or not the first.
    """
    inside = [server for server in servers if server in devices]
    if not inside:
        return apart(servers)
    if len(inside) < len(servers) or tuple(inside) != tuple(devices[: len(inside)]):
        raise CannotCollect(
            f"the servers {', '.join(servers)} are neither the first of the GPUs nor other devices",
            f"such as {devices[0]}, all of the GPUs, or cpu",
        )
    from hwsim.collectives.algorithms.parameter_server import ParameterServer

    return ParameterServer(servers=len(inside))


def apart(servers: Sequence[str]) -> ParameterServer:
    """The algorithm with servers that are not among the GPUs."""
    from hwsim.collectives.algorithms.parameter_server import ParameterServer

    return ParameterServer(on="beside", at=tuple(servers))


def update(ops: Ops, machine: Machine, server: str, moved: float, ready: Sequence[OpRef], pool: int = -1) -> OpRef:
    """A server updates its parameters with the gradients it was sent.

    Args:
        moved: bytes of its memory.
        pool: what lets one update of the server run at a time; -1 for none.
    """
    model = machine.device(server).model
    work = Work(reads=0.6 * moved, writes=0.4 * moved)
    cost = model.compute(server, work) if isinstance(model, Cpu | Gpu | Sockets) else None
    return ops.add("update", "optimizer", server, -1, ready, cost=cost, pool=pool)
