"""Write docs/validation/services.md: services against exact queues and Ciw, and disks against request-level simulations.

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
HEAD: Final = f"""# Services: simulations against queueing theory, Ciw and request-level disks

**In all twelve queues with an exact solution, the 95 % interval of the simulated mean contains the exact mean as often as
it should: in 35 to 40 of {SEEDS} runs.** With closed-loop clients, the throughput of an SSD is within 4.2 % of a
request-level simulation, and that of hard disks within 9.3 %. Nothing is fitted to the queues. This page is written by
`python scripts/queues.py DATA`; the cases are in `benchmarks/queues.py`.

## Exact queues

`services:` runs on ideal machines. *Exact* and *simulated* are the mean response time in ms; *simulated* is the run with
the first seed and its 95 % interval. *Contained* is the number of {SEEDS} seeds whose interval contains the exact mean; a
correct simulation has 35 to 40 in 97 of 100 such tests. *Little* is the sum of all response times minus the integral of the
number of requests in the system, in fs; it must be 0.

| queue | exact | simulated | rejected, exact | rejected, simulated | requests | contained | Little |
|---|---|---|---|---|---|---|---|
"""
CIW: Final = """
## Ciw

[Ciw](https://ciw.readthedocs.io) is a simulator of queueing networks in Python. Both simulators have the same networks and
number of requests, and the same method for intervals, but their own random numbers. Times are mean response times in ms.

| network | exact | hwsim | Ciw | rejected: exact | hwsim | Ciw | CPU us per request: hwsim | Ciw |
|---|---|---|---|---|---|---|---|---|
"""
LOOP: Final = """
## Closed-loop clients of a disk

Each client has one read in flight, as fio with a queue depth: 4 KiB on the SSD, and 0.02 ms of transfer on the hard disk.
The table compares reads per second of a service, of one op with this queue depth, and of a request-level simulation (MQSim;
shortest positioning time first on the seek curve of a drive in DiskSim's collection).

| disk | clients | service | one op | request-level | service against request-level |
|---|---|---|---|---|---|
"""
ARRIVALS: Final = """
## Random reads with Poisson arrivals at a hard disk

Reads of 16 KiB at random positions arrive as a Poisson process. *Load* is relative to the drive's throughput in order of
arrival. Times are response times in ms of a service and, in the columns *request level*, of a request-level simulation
(`fidelity: requests`) with shortest positioning time first. A service does not model positions: seeks become shorter as more
requests wait. The `gain` of hdd-7200rpm was fitted to this drive, but not with arrivals; the other drives have the default gain.

| drive | load | mean | mean, request level | p50 | p50, request level | p95 | p95, request level | p99 | p99, request level |
|---|---|---|---|---|---|---|---|---|---|
"""
TAIL: Final = """
## Limits of this comparison

Queueing theory has no retries, timeouts, group commits, or shares of two capacities at once. These are tested against SimPy
processes with the same rules (within 4 fs per request), and the compiled core is tested to be bit-identical with Python.
Real schedulers use time slices of milliseconds, and kernels add work for each connection; neither is modelled.
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
        means = (f"{ms(result.mean.value)} +- {100 * result.mean.half:.1f} %" for result in (ours, theirs))
        lost = (share(case.lost), share(ours.lost), share(theirs.lost))
        costs = (f"{1e6 * result.seconds / case.requests:.2g}" for result in (ours, theirs))
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
            times = (f"{1e3 * seconds:.4g}" for pair in pairs for seconds in pair)
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
