"""Drives measured with fio: one datum per drive, block size and operation, whichever figure of it is given.

Of a drive with several block sizes alternate ones were fitted (4, 32 and 128 KiB), the others are scored.  Of two drives of
one type the first was fitted.  Where only a data sheet was used every row is scored.  Rows of a drive without a name, and of
volumes whose depth nobody says, cannot be predicted and are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hwsim.devices.ssd import Ssd
from hwsim.devices.storage import Access, Asked, mixed
from published.parts import part, table
from published.score import Miss, Score, group_median, worst_of
from published.search import descend

_ACCESSES: Final = 100_000
_FULL: Final = 120.0  # seconds that "sustained" rows write
_GEN3: Final = 3.5e9  # bytes a second of PCIe 3.0 x4, packets taken off
_DEPTH: Final = 8.0  # of the rows that state none: their accesses a second times their latency


@dataclass(frozen=True, slots=True)
class _Drive:
    """hardware: as in the rows.  scored: blocks or operations not fitted, none for all.  interface: what the host allowed."""

    hardware: str
    name: str
    scored: tuple[str, ...] = ()
    interface: float | None = None
    reason: str = ""


_DRIVES: Final = (
    _Drive(
        "Apple SSD SM256E",
        "ssd-sm256e",
        ("16384", "65536"),
        reason="reads and writes mixed: the turnaround is not the same at every size",
    ),
    _Drive("Samsung PM9A1 1TB", "nvme-pm9a1-1tb", reason="data sheet alone; one job of 1 MiB at depth 32 does not reach it"),
    _Drive("Samsung PM9A1 512GB #2", "nvme-pm9a1-512gb", interface=_GEN3, reason="another drive than the one fitted"),
    _Drive("Lexar NM6A1", "nvme-nm6a1", ("seq write",), reason="its cache is not known"),
    _Drive("Intel Optane 905P", "optane-905p", reason="data sheet alone"),
)


def scores(data: Path) -> tuple[Score, ...]:
    """The group median over the drives."""
    rows = [miss for drive in _DRIVES for miss in _misses(data, drive, held=True)]
    middle, tail = group_median(rows)
    reasons = {drive.name: drive.reason for drive in _DRIVES}
    return (
        Score(
            name="reads and writes of five drives",
            metric="group median",
            value=middle,
            bound=0.20,
            rows=len(rows),
            half="held out",
            worst=worst_of(rows, lambda miss: reasons[miss.group]),
            notes=f"90th percentile {tail:.1%}; rows of an unnamed NVMe drive and of a Ceph volume of unknown depth are left out",
        ),
    )


def fit(data: Path) -> None:
    """Print what the parameters of the SATA drive would be, from the blocks that are not scored."""
    drive = _DRIVES[0]
    base = part(Ssd, drive.name)

    def made(values: list[float]) -> Ssd:
        read, write, iops, write_iops, turnaround = values
        return replace(base, read=read, write=write, iops=iops, write_iops=write_iops, turnaround=turnaround)

    def error(values: object) -> float:
        model = made(list(values))  # type: ignore[call-overload]
        return math.fsum(miss.error**2 for miss in _misses(data, drive, held=False, model=model))

    read, write, iops, write_iops, turnaround = descend(error, [2.5e8, 2.4e8, 46e3, 44e3, 40e-6])
    print(f"{drive.name}: read: {read / 1e6:.4g} MB/s, write: {write / 1e6:.4g} MB/s, iops: {iops / 1e3:.4g} kIOPS,")
    print(f"  write_iops: {write_iops / 1e3:.4g} kIOPS, turnaround: {turnaround * 1e6:.4g} us")


def _misses(data: Path, drive: _Drive, *, held: bool, model: Ssd | None = None) -> Iterator[Miss]:
    """One for each block and operation, of the rows that were fitted or of those that were not."""
    model = part(Ssd, drive.name) if model is None else model
    if drive.interface is not None:
        model = replace(model, interface=drive.interface)
    seen: set[tuple[str, str]] = set()
    for row in table(data / "validation" / "05_storage.csv"):
        key = row["op"], row["block_bytes"]
        if not row["hardware"].startswith(drive.hardware) or row["flag"] or key in seen:
            continue
        scored = not drive.scored or row["block_bytes"] in drive.scored or row["op"] in drive.scored
        if scored is held:
            seen.add(key)
            yield _miss(model, drive, row)


def _miss(model: Ssd, drive: _Drive, row: dict[str, str]) -> Miss:
    size, depth = float(row["block_bytes"]), float(row["iodepth"] or _DEPTH)
    access: Access = "sequential" if row["pattern"] == "sequential" else "random"
    times = _FULL * 5e9 / size if "sustained" in row["op"] else _ACCESSES
    asked = Asked(size=size, times=times, access=access, depth=depth, written=0.5 if "50/50" in row["op"] else 0.0)
    cost = mixed(model, "it", asked) if asked.written else model.serve("it", "write" if "write" in row["op"] else "read", asked)
    rate = times / cost.demand.alone({"it.media": 1.0})
    predicted = {"bandwidth": rate * size, "iops": rate, "latency_mean": depth / rate}[row["metric"]]
    return Miss(f"{row['id']} {row['op']} {row['block_bytes']} B", predicted, float(row["value"]), drive.name)
