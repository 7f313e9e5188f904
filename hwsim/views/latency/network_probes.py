"""Latency numbers of networks: messages between the CPUs of two machines, and round trips."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from hwsim import links
from hwsim.demand import Cost
from hwsim.formats import precise
from hwsim.machine import Machine, NoRoute
from hwsim.machine.contents import Link
from hwsim.ops.op import Scope
from hwsim.ops.transfer import SendOp
from hwsim.views.latency.probe import LINE, ProbeTime, ProbeUnavailable, first_cpu

NETWORKS: Final = ("lan", "fabric")  # kinds of networks
PEERS: Final = 64  # largest number of other machines to try, evenly spaced
NEAR: Final = 100e3  # largest cable length inside a data centre (m)
FAR: Final = 1000e3  # least cable length to another continent (m)


def message(machine: Machine, kinds: tuple[str, ...], size: float) -> ProbeTime:
    """Return the time of one message to the nearest machine.

    Args:
        machine: machine.
        kinds: accepted kinds of links, or kinds of networks ("fabric").
        size: size of the message (B).
    """
    best: ProbeTime | None = None
    for source, target, route in _ways(machine):
        over = [link for link in route if link.model.joins in NETWORKS]
        if not all(link.kind in kinds or link.model.joins in kinds for link in over) or _distance(route) > NEAR:
            continue
        cost = _sent(machine, source, target, size)
        slow = min(over, key=lambda link: link.model.peak())
        how = f"{source} to {target}, {slow.model.called} of {precise(8 * slow.model.peak() / 1e9, '1')} Gb/s"
        timed = ProbeTime(cost.demand.alone(machine.rates()), slow.name, how, cost.why)
        best = timed if best is None or timed.seconds < best.seconds else best
    if best is None:
        called = " or ".join(kind.called for kind in links.KINDS.values() if kind.kind in kinds or kind.joins in kinds)
        raise ProbeUnavailable(_why_none(machine, called))
    return best


def round_trip(machine: Machine, *, far: bool) -> ProbeTime:
    """Return the time of a small message and its answer, to the slowest machine of the data centre or to another continent."""
    best: ProbeTime | None = None
    for source, target, route in _ways(machine):
        length = _distance(route)
        if (length < FAR) if far else (length > NEAR):
            continue
        forth, back = _sent(machine, source, target, LINE), _sent(machine, target, source, LINE)
        seconds = forth.demand.alone(machine.rates()) + back.demand.alone(machine.rates())
        passed = f", {length / 1e3:.0f} km each way" if far else ""
        timed = ProbeTime(seconds, target, f"{source} to {target} and back{passed}", (*forth.why, *back.why))
        best = timed if best is None or timed.seconds > best.seconds else best
    if best is None:
        raise ProbeUnavailable(_why_none(machine, "a cable of more than 1000 km" if far else "a network"))
    return best


def _ways(machine: Machine) -> Iterator[tuple[str, str, tuple[Link, ...]]]:
    """Yield (source, target, route) from the first CPU to CPUs over a network."""
    source, _ = first_cpu(machine)
    if not any(link.model.joins in NETWORKS for link in machine.links):
        return
    others = [name for name in machine.devices_of("cpu") if name != source]
    for target in others[:: max(1, len(others) // PEERS)]:
        try:
            route = machine.route(source, target)
        except NoRoute:
            continue
        if any(link.model.joins in NETWORKS for link in route):
            yield source, target, route


def _sent(machine: Machine, source: str, target: str, size: float) -> Cost:
    cost = SendOp(source=source, target=target, bytes=size).lower(Scope(machine)).cost
    if cost is None:
        raise ProbeUnavailable("the message has no bytes or no route")
    return cost


def _distance(route: tuple[Link, ...]) -> float:
    return math.fsum(link.model.distance() for link in route)


def _why_none(machine: Machine, network: str) -> str:
    nics = machine.devices_of("nic")
    if nics and not any(link.model.joins in NETWORKS for link in machine.links):
        return f"no network is linked to {nics[0]}: define a machine with two nodes and a link between their NICs"
    return f"no two CPUs are connected by {network}"
