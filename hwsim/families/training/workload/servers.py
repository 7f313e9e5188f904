"""Servers that keep the parameters of a training: where they are, and how gradients reach them and parameters come back."""

from __future__ import annotations

from collections.abc import Sequence

from hwsim.communication.algorithms.parameter_server import ParameterServer
from hwsim.communication.flows import Flows
from hwsim.demand import Cost
from hwsim.devices import Cpu, Gpu, Sockets, Work
from hwsim.machine import Machine
from hwsim.machine.libraries.operations import CannotCollect
from hwsim.models.exchanges import Exchanges


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


def through(exchanging: Exchanges, servers: tuple[str, ...], devices: tuple[str, ...], size: float) -> Flows:
    """The exchange of devices with servers that are the first of them, or other devices.

    size: bytes of gradients.

    Raises:
        CannotCollect: some of the servers are among the devices and some are not, or not the first.
    """
    inside = [server for server in servers if server in devices]
    if not inside:
        algorithm = ParameterServer(on="beside", at=servers)
    elif len(inside) == len(servers) and tuple(inside) == devices[: len(inside)]:
        algorithm = ParameterServer(servers=len(inside))
    else:
        message = f"the servers {', '.join(servers)} are neither the first of the GPUs nor other devices"
        raise CannotCollect(message, f"such as {devices[0]}, all of the GPUs, or cpu")
    return exchanging.flows("all-reduce", devices, size, algorithm, named=True)


def update_cost(machine: Machine, server: str, moved: float) -> Cost | None:
    """Cost of a server's update that moves `moved` bytes of its memory; None where its memory is not described."""
    model = machine.device(server).model
    work = Work(reads=0.6 * moved, writes=0.4 * moved)
    return model.compute(server, work) if isinstance(model, Cpu | Gpu | Sockets) else None
