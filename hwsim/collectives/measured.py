"""What was measured of a library, as demands on a machine: the time of an estimate over the links its algorithm uses.

Error: on the machine it was fitted to, that of the fit (docs/validation/collectives.md); where links that
were not there bind, theirs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hwsim.collectives.algorithms import Algorithm, ParameterServer
from hwsim.collectives.plan import Group, Operation
from hwsim.collectives.steady import Flows, Phase, cost, longest
from hwsim.demand import Cost, Demand, Term
from hwsim.devices import Gpu
from hwsim.devices.roofline import source_of
from hwsim.machine import Handling, Machine
from hwsim.machine.libraries.mpi import Mpi
from hwsim.machine.libraries.nccl import Bus, Estimate, Nccl, Protocol
from hwsim.machine.libraries.overheads import PLAIN, Overheads
from hwsim.units import precise

_MOST = 0.95  # of a GPU's compute
_SENT = ("all-to-all", "gather", "scatter", "send")  # what NCCL does by sends
_EACH = ("all-gather", "all-to-all")  # of these MPI counts what each rank gives


def as_measured(
    machine: Machine,
    algorithm: Algorithm,
    operation: Operation,
    names: Sequence[str],
    size: float,
    library: Nccl,
    best: Estimate,
    weights: Sequence[float] = (),
) -> Flows:
    """The time of an estimate of NCCL, over the links that its algorithm uses, as one phase.

    Where the ranks' parts are not equal, the bytes flow for as much longer as the links are busy for longer.
    """
    held = share_of(machine, names, library.channels_of(best.method, best.protocol, len(names), size))
    flows = cost(machine, algorithm, operation, names, size, overheads=Overheads(compute=held), weights=weights)
    flow = max(library.issue, best.seconds) - best.latency
    if weights:
        even = cost(machine, algorithm, operation, names, size, overheads=Overheads(compute=held))
        flow *= _busy(machine, flows) / (_busy(machine, even) or 1.0)
    inputs = (("waiting", precise(best.latency, "s"), f"start, steps and hops of {best.method}, {best.protocol}"),)
    terms = (
        Term("latency", "waiting", inputs, best.latency, kind="latency"),
        Term("flow", "flow", (("flow", precise(flow, "s"), f"nccl: {source_of(library.sources, 'start')}"),), flow, kind="flow"),
    )
    return _as_one(machine, flows, f"{best.method}, {best.protocol}", best.latency, flow, terms)


def as_curve(machine: Machine, algorithm: Algorithm, operation: Operation, names: Sequence[str], size: float, mpi: Mpi) -> Flows:
    """The time of a curve of MPI, over the links of an algorithm.

    Raises:
        CannotCollect: there is no curve for the operation.
    """
    counted = size / len(names) if operation in _EACH else size
    start = mpi.seconds(operation, len(names), 0.0)
    flow = mpi.seconds(operation, len(names), counted) - start
    source = f"mpi: {source_of(mpi.sources, f'curves.{operation}.start')}"
    terms = (
        Term("latency", "start", (("start", precise(start, "s"), source),), start, kind="latency"),
        Term("flow", "flow", (("flow", precise(flow, "s"), source),), flow, kind="flow"),
    )
    return _as_one(machine, cost(machine, algorithm, operation, names, size), "as measured", start, flow, terms)


def _as_one(machine: Machine, flows: Flows, name: str, latency: float, flow: float, terms: tuple[Term, ...]) -> Flows:
    """All phases as one that takes `latency`, then at least `flow`."""
    amounts: dict[str, float] = {}
    moved: dict[str, float] = {}
    for phase in flows.phases:
        for each, amount in phase.cost.demand.amounts:
            amounts[each] = amounts.get(each, 0.0) + amount
        for each, amount, unit in phase.cost.moved:
            if unit != "1":
                moved[each] = moved.get(each, 0.0) + amount
    demands = [phase.cost.demand for phase in flows.phases]
    demand = Demand(
        latency=latency,
        amounts=tuple(sorted(amounts.items())),
        floor=flow,
        holds=demands[0].holds if demands else (),
        share=max((each.share for each in demands), default=1.0),
    )
    one = Cost(demand, moved=tuple((each, amount, "B") for each, amount in sorted(moved.items())), why=terms)
    over, binding = longest(machine, one)
    if over > flow:  # links that the measured machine did not have bind
        inputs = (("flow", precise(over, "s"), f"the links' own rates: {binding}"),)
        one = replace(one, why=(*terms, Term(f"link {binding}", "flow", inputs, over, binding)))
    return replace(flows, phases=(Phase(name, one),))


def _busy(machine: Machine, flows: Flows) -> float:
    """Seconds that the links are busy, phase after phase."""
    return math.fsum(longest(machine, phase.cost)[0] for phase in flows.phases)


def share_of(machine: Machine, names: Sequence[str], channels: int) -> float:
    """Part of a GPU's compute that channels hold: each has a multiprocessor to itself."""
    models = [machine.device(name).model for name in names]
    counts = [model.sms for model in models if isinstance(model, Gpu) and model.sms]
    return min(_MOST, channels / min(counts)) if counts and channels else 0.0


def overheads_as(
    machine: Machine,
    algorithm: Algorithm,
    operation: Operation,
    names: Sequence[str],
    group: Group,
    size: float,
    library: Nccl,
    protocol: Protocol,
    carried: Bus,
) -> Overheads:
    """One protocol of NCCL for an algorithm that was not measured: its start, steps and rate.

    What a step of it takes beyond the latency of the links, which is in what was measured; a parameter server has none of it.
    """
    if isinstance(algorithm, ParameterServer):
        return PLAIN
    speeds, several = library.speeds(protocol), len(group.sizes) > 1
    sent = operation in _SENT and library.send is not None
    near = next((start for start, count in zip(group.starts, group.sizes, strict=True) if count > 1), None)
    held = share_of(machine, names, library.channels_of("ring", protocol, len(names), size))
    return Overheads(
        start=library.send if sent and library.send is not None else library.start,
        step=speeds.step if near is None else _beyond(machine, names[near], names[near + 1], speeds.step),
        hop=_beyond(machine, names[0], names[group.starts[1]], speeds.hop or 0.0) if several else None,
        efficiency=min(1.0, speeds.rate * library.efficiency(carried, several)),
        compute=held,
    ).told(_told(library.sources, "send" if sent else "start", protocol, carried.wire if several else carried.link))


def overheads_like(machine: Machine, flows: Flows, best: Estimate, library: Nccl, group: Group) -> Overheads:
    """An estimate as overheads of single sends: they take as long together where they follow one another without a gap."""
    names = flows.parties[: group.ranks]
    speeds, several = library.speeds(best.protocol), len(group.sizes) > 1
    extra = library.nvls_start if best.method.startswith("nvls") else 0.0
    start = library.send if best.method == "direct" and library.send is not None else library.start
    busy = _busy(machine, flows)
    near = next((at for at, count in zip(group.starts, group.sizes, strict=True) if count > 1), None)
    stepped = not extra and near is not None
    return Overheads(
        start=start + extra,
        step=_beyond(machine, names[near], names[near + 1], speeds.step) if stepped and near is not None else 0.0,
        hop=_beyond(machine, names[0], names[group.starts[1]], speeds.hop or 0.0) if several else None,
        efficiency=min(1.0, busy / best.body) if busy > 0 and 0 < best.body < math.inf else 1.0,
    ).told(_told(library.sources, "start", best.protocol, "nvlink"))


def overheads_of_messages(machine: Machine, names: Sequence[str], size: float, mpi: Mpi) -> Overheads:
    """MPI's single messages as overheads, for algorithms that its curves do not know."""
    curve = mpi.curves.get("send")
    if curve is None or len(names) < 2:
        return PLAIN
    start = curve.seconds(0.0)
    message = max(size, 1.0) / len(names)
    links = max(machine.transfer(names[0], names[1], message).demand.body(machine.rates()), 1e-15)
    flow = max(curve.seconds(message) - start, 1e-15)
    return Overheads(
        step=_beyond(machine, names[0], names[1], start),
        efficiency=min(1.0, links / flow),
    ).told({key: source_of(mpi.sources, "curves.send.start") for key in ("step", "efficiency")})


def _beyond(machine: Machine, a: str, b: str, seconds: float) -> float:
    """What of a measured step is not the latency of the links."""
    return max(0.0, seconds - machine.transfer(a, b, 0.0, Handling(by="sm")).demand.latency)


def _told(sources: Mapping[str, str], start: str, protocol: Protocol, link: str) -> dict[str, str]:
    """Where the numbers of an overhead are from."""
    keys = {"start": start, "step": f"{protocol}.step", "hop": f"{protocol}.hop", "efficiency": link}
    return {name: source_of(sources, key) for name, key in keys.items()}
