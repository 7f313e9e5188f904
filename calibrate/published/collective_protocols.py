"""Constants of NCCL's protocols by link generation, fitted together with two constants of each machine.

All machines of a generation share steps, start latencies and bandwidth fractions of the protocols (for example
`machines/parts/nccl/nvlink4`); each machine has a `start` and a fraction of its link bandwidth. The protocol of each row is
chosen by NCCL's own tables, so each protocol is fitted to the sizes at which it runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from hwsim.communication import selection
from hwsim.communication.flows import Task
from hwsim.communication.plan import RankGroup
from hwsim.machine.libraries.nccl import Nccl, NcclSendCosts, ProtocolCosts, RingBandwidth
from published.collectives import Row, bus_of, devices_of, machine_of, operation_of
from published.parts import declared
from published.search import Floats, least_squares

GENERATIONS: Final[Mapping[str, str]] = declared("collective_protocols")["generations"]
# Constants of a generation with their initial values; of a machine; and shared by all generations.
GUESS: Final[Mapping[str, float]] = {
    "ll.step": 0.9e-6, "ll.wide": 0.3e-6, "ll128.step": 1.6e-6, "ll128.rate": 0.7, "simple.start": 7e-6, "simple.step": 5e-6,
    "nvls": 1.2, "nvls_start": 20e-6, "nvls_knee": 15e6, "sends.step": 6e-6, "sends.rate": 0.8,
}  # fmt: skip
OWN: Final[Mapping[str, float]] = {"start": 7e-6, "rate": 0.85}
SLOTTED: Final[Mapping[str, float]] = {"host": 0.5, "sockets": 0.3}  # only for machines with PCIe
SHARED: Final[Mapping[str, float]] = {"sends.start": 1.6e-6, "sends.peer": 0.32e-6, "sends.ll": 6.6e9}
KEPT: Final = (1.0, 0.5)  # of LL and LL128, and of Simple and sends; on PCIe, copies inside a GPU are negligible
_PULL: Final = 0.02  # strength of the regularization of a logarithm towards its guess


@dataclass(frozen=True, slots=True)
class Prepared:
    """A row with all values that do not depend on the fitted constants."""

    row: Row
    group: RankGroup
    bus: RingBandwidth
    taken: tuple[str, str] | None  # algorithm and protocol by NCCL's tables; None without a choice


def prepared(rows: Iterable[Row]) -> list[Prepared]:
    """Return the rows with their links and protocol choices."""
    return [_prepare(row) for row in rows]


@cache
def _prepare(row: Row) -> Prepared:
    operation = operation_of(row)
    machine, devices = machine_of(row.machine), devices_of(row.machine, row.ranks, row.nodes)
    each = row.ranks // row.nodes
    group = RankGroup(row.ranks, (each,) * row.nodes if row.nodes > 1 else ())
    carried = bus_of(row.machine, row.ranks, row.nodes, operation)
    some = nccl(dict(GUESS) | dict(OWN) | dict(SHARED), GENERATIONS.get(row.machine, "nvlink4"))
    found = selection.estimates(Task(machine, operation, devices, row.size), some, group)
    return Prepared(row, group, carried, (found[0].method, found[0].protocol) if len(found) > 1 else None)


def nccl(said: Mapping[str, float], generation: str) -> Nccl:
    """Return the NCCL library model with these constants."""
    wide = generation.startswith("nvlink")
    flags, chunks = KEPT if wide else (0.0, 0.0)
    rate = min(1.0, said["rate"])
    return Nccl(
        start=said["start"],
        ll=ProtocolCosts(said["ll.step"], rate=0.5, wide=said["ll.wide"], kept=flags),
        ll128=ProtocolCosts(said["ll128.step"], rate=said["ll128.rate"], kept=flags),
        simple=ProtocolCosts(said["simple.step"], start=said["simple.start"], kept=chunks),
        sends=NcclSendCosts(
            said["sends.start"], said["sends.ll"], said["sends.step"], said["sends.peer"], rate=said["sends.rate"], kept=chunks
        ),
        choice="tables",
        nvls=said["nvls"] if generation in ("nvlink4", "nvlink5") else 0.0,
        nvls_start=said["nvls_start"],
        nvls_knee=said["nvls_knee"],
        nvlink=rate if wide else 1.0,
        pcie=1.0 if wide else rate,
        host=said.get("host"),
        sockets=said.get("sockets"),
    )


def seconds(one: Prepared, library: Nccl) -> float:
    """Return the predicted time of a row, in seconds."""
    found = library.estimates(operation_of(one.row), one.group, one.row.size, one.bus)
    if one.taken is not None:
        found = tuple(estimate for estimate in found if (estimate.method, estimate.protocol) == one.taken) or found
    return library.time(found[0])


@dataclass(frozen=True, slots=True)
class Fitted:
    """Constants of generations and of machines."""

    generations: Mapping[str, Mapping[str, float]]
    machines: Mapping[str, Mapping[str, float]]

    def library(self, machine: str, generation: str | None = None, own: Mapping[str, float] | None = None) -> Nccl:
        """Return the constants of a machine and of its generation; default: those of this fit."""
        of = generation or GENERATIONS[machine]
        return nccl({**self.generations[of], **(self.machines[machine] if own is None else own)}, of)


def fitted(rows: Sequence[Prepared], begin: Fitted | None = None) -> Fitted:
    """Return the best constants; the search starts from guesses or from a fit to more rows."""
    machines = list(dict.fromkeys(one.row.machine for one in rows))
    generations = list(dict.fromkeys(GENERATIONS[name] for name in machines))
    places: list[tuple[str, str, float]] = [("", key, guess) for key, guess in SHARED.items()]
    for name in generations:
        guessed = {key: guess for key, guess in GUESS.items() if not key.startswith("nvls") or name in ("nvlink4", "nvlink5")}
        places += [(name, key, guess) for key, guess in guessed.items()]
    for name in machines:
        places += [(name, key, guess) for key, guess in ({**OWN, **SLOTTED} if "server" in name else OWN).items()]
    members = {
        place: [index for index, one in enumerate(rows) if place in ("", one.row.machine, GENERATIONS[one.row.machine])]
        for place in {place for place, _, _ in places}
    }
    measured = np.array([row.row.seconds for row in rows])

    def told(values: Floats) -> dict[str, dict[str, float]]:
        said: dict[str, dict[str, float]] = {}
        for (place, key, guess), value in zip(places, values, strict=True):
            said.setdefault(place, {})[key] = guess * math.exp(value)
        return said

    last: list[tuple[Floats, Floats]] = []

    def errors(values: Floats) -> Floats:
        """Return ln(predicted / measured) of the rows that depend on a changed constant, and the regularization towards the
        guesses.
        """
        if last:
            before, out = last[-1][0], last[-1][1].copy()
            changed = {places[index][0] for index in np.flatnonzero(before != values)}
            which = sorted({index for place in changed for index in members[place]})
        else:
            which, out = list(range(len(rows))), np.empty(len(rows) + len(places))
        said = told(values)
        libraries = {
            name: nccl({**GUESS, **said[""], **said[GENERATIONS[name]], **said[name]}, GENERATIONS[name]) for name in machines
        }
        for index in which:
            out[index] = math.log(seconds(rows[index], libraries[rows[index].row.machine]) / measured[index])
        out[len(rows) :] = _PULL * values
        if len(which) == len(rows):
            last[:] = [(values.copy(), out)]
        return out

    found = told(
        least_squares(errors, np.array([_beginning(begin, *place) for place in places]), rounds=40 if begin is None else 6)
    )
    return Fitted({name: {**GUESS, **found[""], **found[name]} for name in generations}, {name: found[name] for name in machines})


def _beginning(begin: Fitted | None, place: str, key: str, guess: float) -> float:
    """Return the logarithm, relative to the guess, at which the search for a constant starts."""
    if begin is None:
        return 0.0
    of = begin.generations.get(place) or begin.machines.get(place) or next(iter(begin.generations.values()))
    return math.log(of[key] / guess)


def left_out(rows: Sequence[Prepared], machine: str, begin: Fitted, *, generation: bool = False) -> Nccl:
    """Return the library model of a machine if it, or its link generation, had not been measured."""
    mine = GENERATIONS[machine]
    wide = mine.startswith("nvlink")
    others = [
        row
        for row in rows
        if GENERATIONS[row.row.machine].startswith("nvlink") == wide
        and (GENERATIONS[row.row.machine] != mine if generation else row.row.machine != machine)
    ]
    found = fitted(others, begin)
    numbers = found.generations.get(mine) or pooled(list(found.generations.values()))
    own = [found.machines[name] for name in found.machines if GENERATIONS[name] == mine] or list(found.machines.values())
    return nccl({**numbers, **pooled(own)}, mine)


def pooled(several: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the geometric mean of each constant."""
    return {key: math.exp(math.fsum(math.log(fit[key]) for fit in several) / len(several)) for key in several[0]}
