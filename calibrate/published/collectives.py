"""Collectives of NCCL and MPI on machines measured by others.

The files in `machines/parts/nccl` and `machines/parts/mpi` contain one set of constants for each machine, fitted to alternate
sizes of each curve (an operation with a number of ranks and nodes).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from hwsim.communication import Operation, timing
from hwsim.communication.flows import Task
from hwsim.communication.measured import generation, measured, mpi_regime, size_regime
from hwsim.communication.plan import RankGroup
from hwsim.communication.selection import bus, estimates
from hwsim.machine import Machine, build
from hwsim.machine.libraries.mpi import Mpi
from hwsim.machine.libraries.nccl import Nccl, RingBandwidth
from hwsim.machine.libraries.operations import OPERATIONS as ALL
from hwsim.origins import Case
from hwsim.spec import Mistakes, read_text
from published.collective_machines import MACHINES, SERVING, STAS
from published.parts import declared, table
from published.residual import Residual, of_miss
from published.score import Half, Miss, Score, scored

MIB: Final = 1 << 20
OPERATIONS: Final[Mapping[str, Operation]] = {"all_reduce": "all-reduce", "all_gather": "all-gather", "send_recv": "send"}
SOURCES: Final[Mapping[str, str]] = declared("collectives")["sources"]
MPIS: Final[Mapping[str, str]] = declared("collectives")["mpis"]
MPI_OPERATIONS: Final[Mapping[str, str]] = declared("collectives")["mpi_operations"]


@dataclass(frozen=True, slots=True)
class Row:
    """One measured collective; `even`: its size was used for fitting."""

    id: str
    group: str
    machine: str
    operation: str
    ranks: int
    nodes: int
    size: float
    seconds: float
    even: bool

    @property
    def curve(self) -> tuple[str, str, int, int]:
        return self.group, self.operation, self.ranks, self.nodes

    def said(self) -> str:
        """Return a description of the row."""
        return f"{self.id}: {self.operation}, {self.ranks} ranks on {self.nodes} nodes, {self.size:g} B"


@cache
def machine_of(name: str) -> Machine:
    """Return a measured machine."""
    mistakes = Mistakes()
    found = build(read_text(MACHINES.get(name) or SERVING[name]), mistakes)
    mistakes.raise_if_any()
    if found is None:
        raise ValueError(f"{name} cannot be built")
    return found


@cache
def devices_of(name: str, ranks: int, nodes: int) -> tuple[str, ...]:
    """Return the first GPUs of the first nodes."""
    machine, each = machine_of(name), ranks // nodes
    gpus = machine.devices_of("gpu")
    held = {
        node: [gpu for gpu in gpus if machine.device(gpu).node == node]
        for node in dict.fromkeys(machine.device(gpu).node for gpu in gpus)
    }
    return tuple(gpu for node in list(held)[:nodes] for gpu in held[node][:each])


@cache
def bus_of(name: str, ranks: int, nodes: int, operation: Operation) -> RingBandwidth:
    """Return the bandwidths of the machine's links for these ranks."""
    return bus(machine_of(name), devices_of(name, ranks, nodes), operation)


def nccl_rows(data: Path) -> list[Row]:
    """Return unflagged NCCL rows with a time."""
    found = []
    for said in table(data / "validation" / "03_collectives.csv"):
        name = next((name for word, name in SOURCES.items() if word in said["source"]), None)
        if (
            name
            and said["op"] in OPERATIONS
            and not said["flag"]
            and said["metric"] == "time"
            and float(said["message_bytes"]) > 0
        ):
            found.append(_row(said, name, OPERATIONS[said["op"]], float(said["value"])))
    return halved(found)


def mpi_rows(data: Path) -> list[Row]:
    """Return unflagged MPI rows."""
    found = []
    for said in table(data / "validation" / "03_collectives.csv"):
        name = next((name for word, name in MPIS.items() if word in said["software"]), None)
        size = float(said["message_bytes"])
        if name and said["op"] in MPI_OPERATIONS and not said["flag"] and size > 0:
            value = float(said["value"])
            found.append(_row(said, name, MPI_OPERATIONS[said["op"]], value if said["metric"] == "time" else size / value))
    return halved(found)


def stas_rows() -> list[Row]:
    """Return the all-reduce curves stored in this package."""
    found = []
    for (name, ranks, nodes), rates in STAS.items():
        for place, rate in enumerate(rates):
            size = 32768.0 * 2**place
            moved = 2 * (ranks - 1) / ranks * size
            group = f"stas00, {name}, {nodes} nodes"
            seconds = moved / rate / 1e9
            found.append(Row(f"{size / MIB:g} MiB", group, name, "all-reduce", ranks, nodes, size, seconds, even=False))
    return halved(found)


def _row(said: Mapping[str, str], name: str, operation: str, seconds: float) -> Row:
    source = re.sub(r"@.*", "", said["source"])
    ranks, nodes, size = int(said["n_ranks"]), int(said["n_nodes"]), float(said["message_bytes"])
    return Row(said["id"], f"{source}, {said['hardware']}", name, operation, ranks, nodes, size, seconds, even=False)


def halved(rows: Iterable[Row]) -> list[Row]:
    """Return rows with their position in their curve."""
    curves: dict[tuple[str, str, int, int], list[Row]] = {}
    for row in rows:
        curves.setdefault(row.curve, []).append(row)
    return [
        replace(row, even=place % 2 == 0)
        for curve in curves.values()
        for place, row in enumerate(sorted(curve, key=lambda row: row.size))
    ]


def operation_of(row: Row) -> Operation:
    """Return the operation of an NCCL row."""
    return next((operation for operation in ALL if operation == row.operation), "all-reduce")


def predicted(row: Row) -> float:
    """Return the time of a row by simulation, with the `collectives:` library of its machine."""
    machine = machine_of(row.machine)
    flows = timing.timed(machine, None, operation_of(row), devices_of(row.machine, row.ranks, row.nodes), row.size)
    return flows.alone(rates_of(row.machine))


@cache
def rates_of(name: str) -> Mapping[str, float]:
    """Return the bandwidths of a machine's capacities."""
    return machine_of(name).rates()


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of held-out sizes of NCCL and MPI, and of one all-reduce over four nodes."""
    rows = [row for row in nccl_rows(data) if not row.even]
    reduced = [row for row in rows if row.operation == "all-reduce"]
    others = [row for row in rows if row.operation != "all-reduce"]
    kept = [row for row in stas_rows() if not row.even and row.size >= MIB]
    far = [row for row in stas_rows() if row.nodes == 4 and row.size == 4096 * MIB]
    return (
        _nccl("NCCL all-reduce from 1 MiB", [row for row in reduced if row.size >= MIB], 0.06),
        _nccl("NCCL all-reduce of any size", reduced, 0.08),
        _nccl("NCCL all-gather and send", others, 0.10),
        _nccl("NCCL all-reduce from 1 MiB on 8 H200, 8 B200 and 4 x 8 B200", kept, 0.10),
        _nccl("NCCL all-reduce of 4 GiB on 4 x 8 B200", far, 0.10),
        _mpi(data),
    )


def residuals(data: Path) -> list[Residual]:
    """Return residuals of held-out sizes, of NCCL with constants of the link generation, and of MPI with another MPI's
    constants.
    """
    found = []
    for row in (*nccl_rows(data), *(row for row in stas_rows() if row.nodes == 1 or row.size >= MIB)):
        if not row.even:
            found.append(_residual("nccl" if row.nodes == 1 else "network", "known", row, predicted(row)))
        if row.nodes == 1:  # between nodes: `fabrics`
            found.append(_residual("nccl", "device", row, by_generation(row)))
    others = {"intel-mpi-edr": "openmpi-ucx-edr", "openmpi-ucx-edr": "intel-mpi-edr"}
    for row in mpi_rows(data):
        if not row.even:
            found.append(_residual("mpi", "known", row, measured(Mpi, row.machine).seconds(row.operation, row.ranks, row.size)))
        if row.machine in others:
            other: Mpi = measured(Mpi, others[row.machine])
            found.append(_residual("mpi", "source", row, other.seconds(row.operation, row.ranks, row.size)))
    return found


def by_generation(row: Row) -> float:
    """Return the predicted time within a node if the machine states no library: NCCL of its link generation."""
    machine, devices = machine_of(row.machine), devices_of(row.machine, row.ranks, row.nodes)
    library: Nccl = measured(Nccl, generation(machine, devices[0]) or "pcie")
    return estimates(Task(machine, operation_of(row), devices, row.size), library, RankGroup(row.ranks))[0].seconds


def _residual(topic: str, case: Case, row: Row, seconds: float) -> Residual:
    return of_miss(
        Miss(f"{row.machine}: {row.said()}", seconds, row.seconds, row.group),
        topic,
        mpi_regime(row.operation, row.size) if topic == "mpi" else size_regime(row.size),
        case,
        unit=row.machine,
        work=row.said().partition(": ")[2],
        device=row.machine,
    )


def _nccl(name: str, rows: Sequence[Row], bound: float, half: Half = "interpolated") -> Score:
    return _score(name, rows, bound, predicted, half)


def _mpi(data: Path) -> Score:
    rows = [row for row in mpi_rows(data) if not row.even]

    def model(row: Row) -> float:
        mpi: Mpi = measured(Mpi, row.machine)
        return mpi.seconds(row.operation, row.ranks, row.size)

    return _score("MPI", rows, 0.20, model, "interpolated")


def _score(name: str, rows: Sequence[Row], bound: float, model: Callable[[Row], float], half: Half) -> Score:
    misses = [Miss(row.said(), model(row), row.seconds, row.group) for row in rows]
    return scored(name, misses, bound, half, why=_reason)


def _reason(miss: Miss) -> str:
    return "timer resolution of 1 us, launch noise" if "vidur" in miss.group else ""
