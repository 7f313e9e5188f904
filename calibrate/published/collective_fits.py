"""The fits of `collectives`: numbers of NCCL for a machine, and curves of MPI."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from hwsim.machine.libraries.mpi import Curve
from hwsim.machine.libraries.nccl import Nccl, Speeds
from published.collective_machines import STAS_RING
from published.collectives import Row, bus_of, estimates_of, fastest, named
from published.search import descend

KEYS: Final = (
    "start", "send", "ll.step", "ll.hop", "ll.rate", "ll128.step", "ll128.hop", "ll128.rate", "simple.step", "simple.hop",
    "nvlink", "pcie", "network", "tree", "nvls", "nvls_start", "nvls_knee", "issue",
)  # fmt: skip
GUESS: Final = (12e-6, 8e-6, 1e-6, 10e-6, 0.25, 2e-6, 10e-6, 0.7, 4e-6, 20e-6, 0.75, 0.75, 0.9, 0.8, 1.3, 10e-6, 4e6, 10e-6)
SPREADS: Final = (1.0, 0.6, 1.7, 0.3)  # of the starts


def library_of(values: Sequence[float], *, nvls: bool) -> Nccl:
    """The numbers of a fit as NCCL's."""
    said = dict(zip(KEYS, values, strict=True))

    def speeds(name: str) -> Speeds:
        return Speeds(said[f"{name}.step"], said[f"{name}.hop"], min(1.0, said.get(f"{name}.rate", 1.0)))

    return Nccl(
        start=said["start"],
        send=said["send"],
        nvlink=min(1.0, said["nvlink"]),
        pcie=min(1.0, said["pcie"]),
        network=min(1.0, said["network"]),
        tree=min(1.0, said["tree"]),
        nvls=said["nvls"] if nvls else 0.0,
        nvls_start=said["nvls_start"],
        nvls_knee=said["nvls_knee"],
        issue=said["issue"],
        ll=speeds("ll"),
        ll128=speeds("ll128"),
        simple=speeds("simple"),
    )


def fitted(rows: Sequence[Row]) -> dict[str, float]:
    """The numbers that come closest: |ln| of every row, and a little for being far from the guess."""
    name = rows[0].machine
    nvls = name in STAS_RING
    ring = 1e9 * STAS_RING[name] / bus_of(name, 8, 1, "all-reduce").inside if nvls else 0.0  # measured, so not fitted

    def whole(values: Sequence[float]) -> list[float]:
        return [ring if nvls and key == "nvlink" else value for key, value in zip(KEYS, values, strict=True)]

    def error(values: Sequence[float]) -> float:
        library = library_of(whole(values), nvls=nvls)
        total = 0.0
        for row in rows:
            found = estimates_of(row, library)
            total += math.sqrt(math.log(library.time(found[0]) / row.seconds) ** 2 + 1e-4)
            if name := named(row):  # what it took should be what is fastest
                total += 10 * math.log(fastest(found, name) / found[0].seconds)
        return total + 0.003 * sum(math.log(value / guess) ** 2 for value, guess in zip(values, GUESS, strict=True))

    tried = [descend(error, [guess * spread ** (-1) ** at for at, guess in enumerate(GUESS)], step=0.3) for spread in SPREADS]
    return dict(zip(KEYS, whole(min(tried, key=error)), strict=True))


def curves(rows: Sequence[Row]) -> dict[str, Curve]:
    """The curve of every operation of every MPI."""
    found = {}
    for name, operation, ranks in dict.fromkeys((row.machine, row.operation, row.ranks) for row in rows):
        mine = [row for row in rows if (row.machine, row.operation) == (name, operation) and row.even]
        found[f"{name}, {operation}"] = _curve(mine, ranks)
    return found


def _curve(rows: Sequence[Row], ranks: int) -> Curve:
    longest, shortest = max(rows, key=lambda row: row.size), min(row.seconds for row in rows)
    guess = (shortest, longest.size / longest.seconds, longest.size / 100, shortest, 8192.0, 1e-9)

    def curve(values: Sequence[float]) -> Curve:
        start, bandwidth, knee, rendezvous, eager, root = values
        return Curve(start, bandwidth, root=root, knee=knee, eager=eager, rendezvous=rendezvous, ranks=ranks)

    def error(values: Sequence[float]) -> float:
        model = curve(values)
        total = sum(abs(math.log(model.seconds(row.size) / row.seconds)) for row in rows)
        return total + 0.01 * sum(math.log(value / first) ** 2 for value, first in zip(values, guess, strict=True))

    tried = [descend(error, [value * spread ** (-1) ** at for at, value in enumerate(guess)], step=0.3) for spread in SPREADS]
    return curve(min(tried, key=error))
