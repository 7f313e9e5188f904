"""NCCL and RCCL between nodes: constants of each network (`machines/parts/fabric`), and errors with a network held out.

The constants of the links within a node come from `machines/parts/nccl`. A network has three times of a step, one for each
protocol, and two fractions of the bandwidth; they are fitted to all curves of the network, in logarithms, with a weak pull to
their guesses, because no curve determines all of them. Each curve has the same weight.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from hwsim.communication import timing
from hwsim.communication.flows import Task
from hwsim.communication.measured import by_default, size_regime
from hwsim.communication.plan import RankGroup
from hwsim.communication.selection import estimates
from hwsim.machine import Machine, build
from hwsim.machine.libraries.fabric import Fabric
from hwsim.machine.libraries.operations import OPERATIONS, Operation
from hwsim.origins import Case
from hwsim.spec import Mistakes, read_text
from published.parts import declared
from published.residual import Residual, of_miss
from published.score import Miss, Score, scored
from published.search import Floats, least_squares

KEYS: Final = ("ll", "ll128", "simple", "network", "tree")
GUESS: Final = Fabric(ll=10e-6, ll128=12e-6, simple=30e-6, network=0.85, tree=0.8)
_PULL: Final = 0.1  # strength of the pull of a logarithm towards its guess, in rows of one curve
_SERVERS: Final = declared("fabrics")["servers"]
_MACHINES: Final[Mapping[str, str]] = {
    each["name"]: _SERVERS[each["server"]].format(**each) for each in declared("fabrics")["machines"]
}


@dataclass(frozen=True, slots=True)
class Curve:
    """Times of a collective by bytes, on the first `each` GPUs of every node of a machine; `fabric` is "" within a node."""

    machine: str
    fabric: str
    operation: Operation
    each: int
    source: str
    seconds: tuple[tuple[float, float], ...]
    fit: bool = True  # whether constants are fitted to it

    @property
    def name(self) -> str:
        return f"{self.machine}, {self.operation}, {self.each} GPUs a node"


def curves() -> list[Curve]:
    """Return the stored curves."""
    return [
        Curve(row["machine"], row["fabric"], next(name for name in OPERATIONS if name == row["operation"]), row["each"],
              row["source"], tuple((float(size), 1e-6 * us) for size, us in row["us"].items()), row.get("fit", True))
        for row in declared("fabrics")["curves"]
    ]  # fmt: skip


@cache
def machine_of(name: str) -> Machine:
    """Return a machine of the curves."""
    mistakes = Mistakes()
    found = build(read_text(_MACHINES[name]), mistakes)
    mistakes.raise_if_any()
    if found is None:
        raise ValueError(f"{name} cannot be built")
    return found


@cache
def _devices(name: str, each: int) -> tuple[str, ...]:
    machine = machine_of(name)
    by_node: dict[str, list[str]] = {}
    for gpu in machine.devices_of("gpu"):
        by_node.setdefault(machine.node_of(gpu), []).append(gpu)
    return tuple(gpu for node in by_node.values() for gpu in node[:each])


def predicted(curve: Curve, size: float, fabric: Fabric | None = None) -> float:
    """Return the time (s) with the constants of a network; None: those of the machine's."""
    machine, devices = machine_of(curve.machine), _devices(curve.machine, curve.each)
    if fabric is None:
        return timing.timed(machine, None, curve.operation, devices, size).alone(machine.rates())
    library = by_default(machine, devices)
    if library is None:
        raise ValueError(f"{curve.machine} has no library")
    group = RankGroup(len(devices), (curve.each,) * (len(devices) // curve.each))
    return estimates(Task(machine, curve.operation, devices, size), library.over(fabric), group)[0].seconds


def fitted(some: Sequence[Curve], guess: Fabric = GUESS) -> Fabric:
    """Return the constants of a network that fit its curves."""
    start = np.array([math.log(getattr(guess, key)) for key in KEYS])

    def errors(values: Floats) -> Floats:
        fabric = _fabric(start + values)
        out = [
            math.log(predicted(curve, size, fabric) / seconds) / math.sqrt(len(curve.seconds))
            for curve in some
            for size, seconds in curve.seconds
        ]
        return np.array([*out, *(_PULL * values)])

    return _fabric(start + least_squares(errors, np.zeros(len(KEYS)), rounds=8))


def _fabric(logs: Floats) -> Fabric:
    values = dict(zip(KEYS, map(math.exp, logs), strict=True))
    return Fabric(**{**values, "network": min(1.0, values["network"]), "tree": min(1.0, values["tree"])})


@cache
def _fitted(some: tuple[Curve, ...]) -> Fabric:
    return fitted(some)


def middle(fabrics: Iterable[Fabric]) -> Fabric:
    """Return the geometric mean of networks."""
    several = list(fabrics)
    return Fabric(**{key: statistics.geometric_mean(getattr(fabric, key) for fabric in several) for key in KEYS})


def by_network(but: str = "") -> dict[str, tuple[Curve, ...]]:
    """Return the fitted curves between nodes of each network, except one."""
    out: dict[str, tuple[Curve, ...]] = {}
    for curve in curves():
        if curve.fabric and curve.fabric != but and curve.fit:
            out[curve.fabric] = (*out.get(curve.fabric, ()), curve)
    return out


def left_out(curve: Curve) -> list[tuple[Case, Fabric]]:
    """Return the constants without the machine of a curve, if other machines have its network, and without its network."""
    alike = tuple(other for other in by_network()[curve.fabric] if other.machine != curve.machine)
    others = middle(_fitted(some) for some in by_network(curve.fabric).values())
    return [*([("device", _fitted(alike))] if alike else []), ("generation", others)]  # type: ignore[list-item]


def residuals(data: Path) -> list[Residual]:  # noqa: ARG001
    """Return residuals of every curve with its machine, and with its network, held out."""
    return [
        of_miss(Miss(f"{curve.name}: {size:g} B", predicted(curve, size, fabric), seconds, curve.source), "network",
                size_regime(size), case, unit=curve.machine if case == "device" else curve.fabric,
                work=f"{curve.operation}, {curve.each}, {size:g} B", device=curve.machine)
        for curve in curves() if curve.fabric
        for case, fabric in left_out(curve)
        for size, seconds in curve.seconds
    ]  # fmt: skip


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of collectives between two nodes, with the machine and with the network held out."""
    found = residuals(data)
    return tuple(
        scored(f"NCCL and RCCL between two nodes, held-out {what}", [row.miss for row in found if row.case == case], bound,
               "cross-validated", reached=reached)
        for what, case, bound, reached in (("machine", "device", 0.35, 0.378), ("network", "generation", 0.70, None))
    )  # fmt: skip


if __name__ == "__main__":
    networks = {name: _fitted(some) for name, some in by_network().items()}
    for name, fabric in {**networks, "unknown": middle(networks.values())}.items():
        print(name, {key: float(f"{getattr(fabric, key):.3g}") for key in KEYS})
