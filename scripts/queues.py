"""Write docs/validation/services.md: services beside exact queues, beside Ciw, and disks beside request-level simulations.

python scripts/queues.py DATA        DATA: folder with oracles/; Ciw is compared where it is installed
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from math import isclose
from pathlib import Path
from typing import Any, Final

import hwsim
from benchmarks.queues import CASES, COMPARED, SEEDS, by_ciw, held, machine, simulated
from hwsim.devices.hdd import Hdd
from published.hdd import DRIVES
from published.parts import part, table

PAGE: Final = Path(__file__).parents[1] / "docs" / "validation" / "services.md"
CLIENTS: Final = (1, 4, 16, 64)
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
TAIL: Final = """
## What this does not show

Theory has no retries, timeouts, group commits or shares of two capacities at once: those are held against the same
rules as SimPy processes (within 4 fs a request), and the compiled player against Python's, to the last bit.
Percentiles of a hard disk that takes the nearest first are too short: no request is passed over for ever here. Real
schedulers share cores in slices of milliseconds, and kernels add work for each connection.
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
    reads = 100 * clients
    run = hwsim.simulate(made, {"hwsim": "workload/1", "services": {"s": service}, "requests": reads})
    program = {"read": {**asked, "times": reads, "depth": clients}}
    deep = reads / hwsim.simulate(made, {"hwsim": "workload/1", "program": [program]}).makespan_s
    many = reads / run.makespan_s
    rates = " | ".join(f"{float(f'{rate:.4g}'):,.10g}" for rate in (many, deep, oracle))
    return f"| {label} | {clients} | {rates} | {100 * (many / oracle - 1):+.1f} % |"


def main(data: Path) -> None:
    """Write the page."""
    rows = (HEAD, *(f"{row}\n" for row in exact()), CIW, *(f"{row}\n" for row in beside_ciw()))
    PAGE.write_text("".join((*rows, LOOP, *(f"{row}\n" for row in loops(data)), TAIL)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
