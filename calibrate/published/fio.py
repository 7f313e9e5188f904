"""SSDs measured with fio: one value per drive, block size and operation (bandwidth, IOPS or latency).

For a drive with several block sizes, 4, 32 and 128 KiB are used for fitting and the others are evaluated. Of two drives of one
model, the first is used for fitting. For drives described by their datasheet only, every row is evaluated. Rows of unnamed
drives and of volumes with unknown queue depth cannot be predicted and are excluded.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from hwsim.devices.ssd import Ssd, WriteCache
from hwsim.devices.storage import Access, StorageAccesses, mixed_cost
from hwsim.links.pcie import GENERATIONS
from hwsim.origins import Case
from published.parts import declared, part, table
from published.residual import Residual, of_miss
from published.score import Miss, Score, scored

_ACCESSES: Final = 100_000
_FULL: Final = 120.0  # s: duration of "sustained" rows
_DEPTH: Final = 8.0  # queue depth of rows without one: IOPS x latency


@dataclass(frozen=True, slots=True)
class _Drive:
    """hardware: name in the rows. scored: block sizes or operations not used for fitting; none means all. interface: bandwidth
    of the host.
    """

    hardware: str
    name: str
    scored: tuple[str, ...] = ()
    interface: float | None = None
    reason: str = ""


_DRIVES: Final = tuple(_Drive(**record) for record in declared("fio")["drives"])


class Client(NamedTuple):
    """A client SSD: sequential bandwidth with 1 MiB at queue depth 32, and sustained write bandwidth over 120 s (B/s)."""

    name: str
    generation: int  # PCIe generation of the four lanes
    read: float
    write: float
    sustained: float


CLIENTS: Final = tuple(Client(**record) for record in declared("fio")["clients"])


def _clients() -> Iterator[tuple[Client, str, Miss]]:
    """Return each drive predicted from other models: medians of their fraction of four PCIe lanes."""
    for drive in CLIENTS:
        others = [client for client in CLIENTS if client.name[:14] != drive.name[:14]]
        for way in ("read", "write", "sustained"):
            parts = [getattr(other, way) / _wires(other) for other in others]
            yield (
                drive,
                way,
                Miss(f"{drive.name} {way}", _wires(drive) * statistics.median(parts), getattr(drive, way), drive.name),
            )


class Filled(NamedTuple):
    """A TLC drive written from empty to full: cache size, write bandwidth of the cache, and average bandwidth (B, B/s)."""

    name: str
    size: float
    cache: float
    fast: float
    whole: float


FILLED: Final = tuple(Filled(**record) for record in declared("fio")["filled"])


def behind(drive: Filled) -> float:
    """Return the bandwidth behind the cache (B/s) that gives the measured average in the token bucket of `ssd`."""
    low, high = 1e6, drive.fast
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (
            (middle, high) if _filling(drive, drive.fast, drive.cache, middle) > drive.size / drive.whole else (low, middle)
        )
    return middle


def _filling(drive: Filled, fast: float, cache: float, steady: float) -> float:
    model = Ssd(read=drive.fast, write=steady, latency=60e-6, cache=WriteCache(size=cache, write=fast), size=drive.size)
    return model.serve("it", "write", StorageAccesses(size=1e6, times=drive.size / 1e6)).demand.alone({"it.media": 1.0})


def _from_others() -> Iterator[tuple[Filled, Miss]]:
    """Return the time to fill each drive, from the other drives' cache and bandwidth relative to their size."""
    for drive in FILLED:
        others = [peer for peer in FILLED if peer is not drive]
        cache = drive.size * statistics.median(peer.cache / peer.size for peer in others)
        steady = drive.size * statistics.median(behind(peer) / peer.size for peer in others)
        fast = statistics.median(other.fast for other in others)
        yield (
            drive,
            Miss(f"{drive.name}, filled", _filling(drive, fast, cache, min(steady, fast)), drive.size / drive.whole, drive.name),
        )


def _wires(drive: Client) -> float:
    """Return the bandwidth of the drive's four lanes in each direction, in B/s."""
    rate, code = GENERATIONS[drive.generation]
    return 4 * rate * code / 8


def residuals(data: Path) -> list[Residual]:
    """Return residuals of held-out rows, of drives described by their datasheet, and of drives predicted from other models."""
    found = []
    for drive in _DRIVES:
        case: Case = "known" if drive.scored else "device"
        for miss in _misses(data, drive):
            op = miss.row.split(" ", 1)[1]
            regime = "write" if "write" in op else "mixed" if "rw" in op else "read"
            rate = drive.name != "optane-905p"  # this row is a latency
            found.append(of_miss(miss, "disk", regime, case, unit=drive.name, work=op, device=drive.name, rate=rate))
    for client, way, miss in _clients():
        regime = "read" if way == "read" else "write"
        found.append(
            of_miss(
                miss, "disk", regime, "generation", unit=client.name[:14], work=f"in order, {way}", device=client.name, rate=True
            )
        )
    for drive_of, miss in _from_others():
        found.append(of_miss(miss, "disk", "filled", "generation", unit=drive_of.name, work="filled", device=drive_of.name))
    return found


def scores(data: Path) -> tuple[Score, ...]:
    """Return the scores of drives."""
    rows = [miss for drive in _DRIVES for miss in _misses(data, drive)]
    reasons = {drive.name: drive.reason for drive in _DRIVES}
    return (
        scored(
            "reads and writes, five drives",
            rows,
            0.20,
            "interpolated",
            why=lambda miss: reasons[miss.group],
        ),
        _clients_score(),
        _filled_score(),
    )


def _clients_score() -> Score:
    misses = [miss for *_, miss in _clients()]
    return scored(
        "sequential bandwidth of client SSDs, held-out SSD model",
        misses,
        0.15,
        "cross-validated",
        metric="median over drives of the mean error",
        why=lambda miss: "slow writes for a drive of 2 TB" if "2TB" in miss.row else "",
    )


def _filled_score() -> Score:
    misses = [miss for _, miss in _from_others()]
    return scored(
        "time to fill client SSDs, held-out SSD",
        misses,
        0.15,
        "cross-validated",
        metric="median over all rows",
        reached=0.234,
    )


def _misses(data: Path, drive: _Drive) -> Iterator[Miss]:
    """Return one row per block size and operation, of the rows not used for fitting."""
    model = part(Ssd, drive.name)
    if drive.interface is not None:
        model = replace(model, interface=drive.interface)
    seen: set[tuple[str, str]] = set()
    for row in table(data / "validation" / "05_storage.csv"):
        key = row["op"], row["block_bytes"]
        if not row["hardware"].startswith(drive.hardware) or row["flag"] or key in seen:
            continue
        if not drive.scored or row["block_bytes"] in drive.scored or row["op"] in drive.scored:
            seen.add(key)
            yield _miss(model, drive, row)


def _miss(model: Ssd, drive: _Drive, row: dict[str, str]) -> Miss:
    size, depth = float(row["block_bytes"]), float(row["iodepth"] or _DEPTH)
    access: Access = "sequential" if row["pattern"] == "sequential" else "random"
    times = _FULL * 5e9 / size if "sustained" in row["op"] else _ACCESSES
    asked = StorageAccesses(size=size, times=times, access=access, depth=depth, written=0.5 if "50/50" in row["op"] else 0.0)
    cost = (
        mixed_cost(model, "it", asked) if asked.written else model.serve("it", "write" if "write" in row["op"] else "read", asked)
    )
    rate = times / cost.demand.alone({"it.media": 1.0})
    predicted = {"bandwidth": rate * size, "iops": rate, "latency_mean": depth / rate}[row["metric"]]
    return Miss(f"{row['id']} {row['op']} {row['block_bytes']} B", predicted, float(row["value"]), drive.name)
