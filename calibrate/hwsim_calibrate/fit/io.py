"""A disk and a network card from the suites `storage` and `network`: what the operating system gives a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hwsim_calibrate.fit.piecewise import Pieces, pieces_of
from hwsim_calibrate.fit.writing import quantity
from hwsim_calibrate.store import Measurements, Row

SMALL: Final = 4096


def disk_part(measurements: Measurements, ref: str) -> dict[str, Any]:
    """Past the page cache (O_DIRECT): bandwidth of long reads in a row, time of a small one anywhere, several at once."""
    rows = [row for row in measurements.of("storage") if row.params.get("cache") == "direct"]
    reads = _by_size(rows, "read", "sequential")
    if len(reads) < 2:
        return {}
    writes, anywhere = _by_size(rows, "write", "sequential"), _by_size(rows, "read", "random")
    read = pieces_of(reads)
    found: dict[str, Any] = {
        "kind": "disk",
        "source": "measured",
        "ref": f"{ref}; O_DIRECT, wall clock; in a virtual machine the host's cache may lie behind it",
        "notes": _told("reads in a row", read, reads),
        "read": {"value": quantity(_long(reads, read), "B/s"), "points": len(reads)},
    }
    if len(writes) >= 2:
        found["write"] = {"value": quantity(_long(writes, pieces_of(writes)), "B/s"), "points": len(writes)}
    first = (anywhere or reads)[0]
    found["latency"] = {"value": quantity(max(first[1] - first[0] / _long(reads, read), 1e-9), "s"), "points": 1}
    deep = [
        (_int(row.params.get("depth")), 1.0 / row.quiet) for row in rows if row.op == "read" and _int(row.params.get("depth")) > 1
    ]
    if deep:
        depth, most = max(deep, key=lambda each: each[1])
        found["iops"] = {"value": quantity(max(most, 1.0 / first[1]), "1/s"), "points": len(deep)}
        found["queue"] = depth
    return found


def network_notes(measurements: Measurements) -> str:
    """Messages over the loopback in words: no part of a machine stands for them."""
    rows = [row for row in measurements.of("network", "tcp") if row.params.get("pattern") == "pingpong"]
    points = sorted((float(_int(row.params.get("bytes"))), row.quiet) for row in rows)
    if len(points) < 2:
        return ""
    return _told("TCP over the loopback, one way", pieces_of(points), points)


def _by_size(rows: Sequence[Row], op: str, pattern: str) -> list[tuple[float, float]]:
    return sorted(
        (float(_int(row.params.get("bytes"))), row.quiet)
        for row in rows
        if row.op == op and row.params.get("pattern") == pattern and _int(row.params.get("depth", 1)) <= 1
    )


def _long(points: Sequence[tuple[float, float]], pieces: Pieces) -> float:
    """Bytes per second of long accesses: of the last piece, or reached at the largest size if that is more."""
    reached = max(size / seconds for size, seconds in points)
    return min(max(pieces.rate, reached), 4.0 * reached)


def _told(what: str, pieces: Pieces, points: Sequence[tuple[float, float]]) -> str:
    errors = sorted(abs(pieces.seconds(size) / seconds - 1.0) for size, seconds in points)
    parts = [
        f"from {quantity(max(each.least, 1.0), 'B')} on {quantity(each.start, 's')} and {quantity(each.rate, 'B/s')}"
        for each in pieces.pieces
    ]
    return f"{what}: {', '.join(parts)}; median error {100 * errors[len(errors) // 2]:.1f} %"


def _int(said: object) -> int:
    return int(said) if isinstance(said, int | float) else 1
