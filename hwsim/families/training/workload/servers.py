"""Parameter servers: their devices, the exchange of gradients and parameters, and the cost of an update."""

from __future__ import annotations

from collections.abc import Sequence

from hwsim.communication.algorithms.parameter_server import ParameterServer
from hwsim.communication.flows import Flows
from hwsim.demand import Cost
from hwsim.devices import Cpu, Gpu, Sockets, Work
from hwsim.machine import Machine
from hwsim.machine.libraries.operations import CannotCollect
from hwsim.models.exchanges import CollectiveCosts


def servers_near(machine: Machine, names: Sequence[str], device: str) -> tuple[str, ...]:
    """Return the parameter servers, with names as seen from the node of a device.

    Raises:
        UnknownName: the machine has no device of a name.
    """
    node = machine.device(device).node
    servers: list[str] = []
    for name in names:
        try:
            servers.append(machine.one(name, node))
        except ValueError:  # the name matches several devices: use all
            servers += machine.select([name], node)
    return tuple(dict.fromkeys(servers))


def server_flows(exchanging: CollectiveCosts, servers: tuple[str, ...], devices: tuple[str, ...], size: float) -> Flows:
    """Return the flows between GPUs and their parameter servers.

    Args:
        exchanging: costs of exchanges on the machine.
        servers: the first of the GPUs, or other devices.
        devices: GPUs.
        size: size of the gradients (B).

    Raises:
        CannotCollect: some servers are GPUs and others are not, or the servers are not the first GPUs.
    """
    inside = [server for server in servers if server in devices]
    if not inside:
        algorithm = ParameterServer(on="beside", at=servers)
    elif len(inside) == len(servers) and tuple(inside) == devices[: len(inside)]:
        algorithm = ParameterServer(servers=len(inside))
    else:
        message = f"parameter servers: expected the first GPUs or other devices, got {', '.join(servers)}"
        raise CannotCollect(message, f"server: {devices[0]}   or   server: cpu")
    return exchanging.flows("all-reduce", devices, size, algorithm, named=True)


def update_cost(machine: Machine, server: str, moved: float) -> Cost | None:
    """Return the cost of an update on a server with `moved` bytes of memory traffic; None for other kinds of devices."""
    model = machine.device(server).model
    work = Work(reads=0.6 * moved, writes=0.4 * moved)
    return model.compute(server, work) if isinstance(model, Cpu | Gpu | Sockets) else None
