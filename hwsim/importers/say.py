"""A recording in words and as a document: ranks, GPUs, what each rank did, and what was left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from hwsim.formats import format_quantity
from hwsim.importers.recording import ON_DEVICE, Rank, Recording, What
from hwsim.ticks import FEMTO
from hwsim.views.kit.table import Column, aligned


def as_dict(recording: Recording) -> dict[str, Any]:
    """The document `hwsim: import/1`."""
    return {
        "hwsim": "import/1",
        "format": recording.format,
        "ranks": [_rank(rank) for rank in recording.ranks],
        "left_out": [
            {"name": left.name, "count": left.count, "time_s": left.duration / FEMTO, "why": left.why} for left in recording.left
        ],
    }


def _rank(rank: Rank) -> dict[str, Any]:
    counts = np.bincount(rank.slices.what, minlength=len(What))
    launched, found = launches(rank)
    return {
        "rank": rank.number,
        "world": rank.world,
        "file": rank.file,
        "host": rank.host,
        "gpus": [{"number": number, "name": name} for number, name in rank.devices],
        "slices": {what.name.lower(): int(counts[what]) for what in What},
        "launched": launched,
        "launches_found": found,
        "clock_offset_s": rank.shift / FEMTO,
    }


def launches(rank: Rank) -> tuple[int, int]:
    """Kernels, copies and sets of a rank, and how many of them have their call in the recording."""
    slices = rank.slices
    on_device = np.isin(slices.what, [int(what) for what in ON_DEVICE])
    called = slices.link[(slices.what == What.CALL) & (slices.link >= 0)]
    return int(on_device.sum()), int(np.isin(slices.link[on_device], called).sum())


def text(recording: Recording) -> str:
    """A table of the ranks, and what was left out."""
    ranks = [_rank(rank) for rank in recording.ranks]
    columns = [
        Column("rank", [str(rank["rank"]) for rank in ranks]),
        Column("ops", [str(rank["slices"]["op"]) for rank in ranks]),
        Column("calls", [str(rank["slices"]["call"]) for rank in ranks]),
        Column("on GPUs", [str(rank["launched"]) for rank in ranks]),
        Column("launch found", [str(rank["launches_found"]) for rank in ranks]),
        Column("GPU", [", ".join(sorted({gpu["name"] for gpu in rank["gpus"]})) for rank in ranks], right=False, widest=40),
    ]
    lines = aligned(columns)
    for left in recording.left:
        time = f", {format_quantity(left.duration / FEMTO, 's')}" if left.duration else ""
        lines.append(f"  left out: {left.count} x {left.name}{time}: {left.why}")
    return "\n".join(lines) + "\n"
