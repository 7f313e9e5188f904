"""Write docs/validation/services.md: services beside exact queues, beside Ciw, and disks beside request-level simulations.

python scripts/queues.py DATA        DATA: folder with oracles/; Ciw is compared where it is installed
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from math import inf, isclose
from pathlib import Path
from typing import Any, Final

import numpy as np

import hwsim
from benchmarks.queues import CASES, COMPARED, SEEDS, by_ciw, held, machine, simulated
from hwsim.devices.hdd import Hdd
from hwsim.families.requests.hdd import HddSimulation
from hwsim.families.requests.requests import columns
from published.hdd import DRIVES
from published.parts import part, table

PAGE: Final = Path(__file__).parents[1] / "docs" / "validation" / "services.md"
CLIENTS: Final = (1, 4, 16, 64)
COMING: Final = ("hdd-7200rpm", "barracuda-7200", "cheetah-9lp", "atlas-10k-v")
LOADS: Final = (0.3, 0.8, 1.1)
IDEAL: Final = machine(fifo=True)
HEAD: Final = f"""# Services beside theory, Ciw and request-level disks

`services:` on ideal machines, beside what is known exactly. Nothing is fitted. Written by `python scripts/queues.py
DATA`; the cases stand in `benchmarks/queues.py`, in the language of a workload.

## Exact queues

Mean time of an answer, in ms. *found* is the run of the first seed with its interval of 95 %; *holds* says in how
many of {SEEDS} seeds that interval holds the exact mean. A correct one does in 35 to 40 of {SEEDS}, in 97 of 100 such
tests: fewer would be a wrong model or a wrong interval. *Little* is the sum of all stays less the integral of the
requests there, in fs.

| queue | exact | found | lost: exact | found | requests | holds | Little |
|---|---|---|---|---|---|---|---|
"""
CIW: Final = """
## Ciw

[Ciw](https://ciw.readthedocs.io) is a simulator of queueing networks in Python. Both are given the same networks and
as many requests, and their answers the same intervals; the random numbers are their own.

| network | exact | hwsim | Ciw | lost: exact | hwsim | Ciw | us of CPU a request: hwsim | Ciw |
|---|---|---|---|---|---|---|---|---|
"""
LOOP: Final = """
## A closed loop at a disk

Clients that each keep one read of 4 KiB (the hard disk: of 0.02 ms of its rate) under way, as fio with a queue depth.
Reads a second: of the service, of one op of that depth, and of a simulation of single requests (MQSim; shortest
positioning first on the seek curve of a drive in DiskSim's collection).

| disk | clients | service | one op | request by request | off |
|---|---|---|---|---|---|
"""
ARRIVALS: Final = """
## Reads that come at random to a hard disk

Reads of 16 KiB anywhere on the disk, that come as a Poisson stream; *load* is of what the drive would serve in order of
arrival. Time of an answer in ms: of a service, and of single requests (`fidelity: requests`), shortest positioning first.
A service knows no places: the arm takes any of those that wait, and the way there is shorter the more of them there are.
The `gain` of hdd-7200rpm was fitted on that drive, though not on arrivals; the others have the default.

| drive | load | mean | one by one | p50 | one by one | p95 | one by one | p99 | one by one |
|---|---|---|---|---|---|---|---|---|---|
"""
TAIL: Final = """
## What this does not show

Theory has no retries, timeouts, group commits or shares of two capacities at once: those are held against the same
rules as SimPy processes (within 4 fs a request), and the compiled player against Python's, to the last bit.
Real schedulers share cores in slices of milliseconds, and kernels add work for each connection.
"""


def ms(seconds: float) -> str:
    """A time in milliseconds."""
    return f"{seconds * 1e3:.4f}"


def share(value: float) -> str:
    """A share in percent; nothing if nothing is lost."""
    return f"{100 * value:.2f} %" if value else ""


def exact() -> Iterator[str]:
    """Rows of queues with exact solutions."""
    for name, case in CASES.items():
        found = simulated(name)
        mean = f"{ms(found.mean.value)} +- {100 * found.mean.half:.1f} %"
        numbers = (f"{case.requests:,}", f"{held(name)}", f"{found.little}")
        yield "| " + " | ".join((name, ms(case.exact), mean, share(case.lost), share(found.lost), *numbers)) + " |"


def beside_ciw() -> Iterator[str]:
    """Rows of networks that both simulate."""
    for name in COMPARED:
        case, ours, theirs = CASES[name], simulated(name, 3), by_ciw(name, 3)
        means = (f"{ms(each.mean.value)} +- {100 * each.mean.half:.1f} %" for each in (ours, theirs))
        lost = (share(case.lost), share(ours.lost), share(theirs.lost))
        costs = (f"{1e6 * each.seconds / case.requests:.2g}" for each in (ours, theirs))
        yield "| " + " | ".join((name, ms(case.exact), *means, *lost, *costs)) + " |"


def loops(data: Path) -> Iterator[str]:
    """Rows of disks that clients read."""
    for kind, name in (("ssd", "mqsim_read_iops_vs_qd.csv"), ("hdd", "hdd_micro_ncq.csv")):
        for row in table(data / "oracles" / name):
            if not {"SPTF", "RANDOM_UNIFORM"} & set(row.values()) or int(row["qd"]) not in CLIENTS:
                continue
            if kind == "hdd":
                disk = {"kind": "disk", "use": DRIVES[row["disk_seek_source"]], "queue": 64}
                drive = part(Hdd, DRIVES[row["disk_seek_source"]])
                size, label = 0.02e-3 * drive.rate(0.5), f"hard disk, {row['disk_seek_source']}"
            else:
                disk, size, label = {"kind": "disk", "use": "mqsim-default"}, float(row["size_B"]), "SSD of MQSim"
                if not isclose(size, 4096):
                    continue
            yield _loop(label, disk, size, int(row["qd"]), float(row["iops"]))


def _loop(label: str, disk: dict[str, Any], size: float, clients: int, oracle: float) -> str:
    """A row: a service whose clients each read once more as soon as they are answered, and one op."""
    asked = {"from": "disk", "bytes": f"{size} B", "access": "random"}
    made = {**IDEAL, "parts": {"cpu": IDEAL["parts"]["four"], "disk": disk}}
    service = {"device": "cpu", "arrivals": {"clients": clients}, "request": [{"read": asked}]}
    reads = 100 * clients if disk.get("use") == "mqsim-default" else 20_000  # ways are drawn
    run = hwsim.simulate(made, {"hwsim": "workload/1", "services": {"s": service}, "requests": reads})
    program = {"read": {**asked, "times": reads, "depth": clients}}
    deep = reads / hwsim.simulate(made, {"hwsim": "workload/1", "program": [program]}).makespan_s
    many = reads / run.makespan_s
    rates = " | ".join(f"{float(f'{rate:.4g}'):,.10g}" for rate in (many, deep, oracle))
    return f"| {label} | {clients} | {rates} | {100 * (many / oracle - 1):+.1f} % |"


def arrivals() -> Iterator[str]:
    """Rows of drives at which reads arrive."""
    for name in COMING:
        drive = part(Hdd, name)
        alone = drive.overhead + drive.ways().mean + 16384 / drive.stretch(1.0)
        for load in LOADS:
            pairs = zip(of_service(name, load / alone), of_drive(drive, load / alone), strict=True)
            times = (f"{1e3 * each:.4g}" for pair in pairs for each in pair)
            yield f"| {name} | {load:.0%} | {' | '.join(times)} |"


def of_service(name: str, rate: float, requests: int = 200_000) -> list[float]:
    """Mean, p50, p95 and p99 of a service that reads."""
    made = {**IDEAL, "parts": {"cpu": IDEAL["parts"]["four"], "disk": {"kind": "disk", "use": name}}}
    read = {"from": "disk", "bytes": "16 KiB", "access": "random"}
    service = {"device": "cpu", "arrivals": {"poisson": f"{rate} 1/s"}, "request": [{"read": read}]}
    found = hwsim.simulate(made, {"hwsim": "workload/1", "services": {"s": service}, "requests": requests}).services
    assert found is not None
    assert found.answers[0].latency is not None
    return [found.answers[0].latency.mean.value, *(known.value for _, known in found.answers[0].latency.percentiles)]


def of_drive(drive: Hdd, rate: float, requests: int = 40_000) -> list[float]:
    """The same of the drive, request by request."""
    draws = np.random.default_rng(1)
    came = np.cumsum(draws.exponential(1 / rate, requests))
    asked = columns(draws.integers(0, int(drive.holds or 0), requests).tolist(), 16384, at=came.tolist())
    simulation = HddSimulation(drive)
    simulation.offer(asked)
    simulation.advance(inf)
    taken = np.array(asked.finish) - came
    return [float(taken.mean()), *np.percentile(taken, (50, 95, 99)).tolist()]


def main(data: Path) -> None:
    """Write the page."""
    rows = (HEAD, *(f"{row}\n" for row in exact()), CIW, *(f"{row}\n" for row in beside_ciw()))
    PAGE.write_text(
        "".join((*rows, LOOP, *(f"{row}\n" for row in loops(data)), ARRIVALS, *(f"{row}\n" for row in arrivals()), TAIL)),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
