"""A recording in words and as a document: ranks, GPUs, what each rank did, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hwsim.formats import format_quantity, format_share
from hwsim.importers.recording import Rank, Recording, What
from hwsim.importers.steps import of_rank
from hwsim.spec.mistakes import one_line
from hwsim.ticks import FEMTO
from hwsim.views.kit.table import Column, aligned


def as_dict(recording: Recording) -> dict[str, Any]:
    """The document `hwsim: import/1`."""
    return {
        "hwsim": "import/1",
        "format": recording.format,
        "begin_s": recording.zero,
        "ranks": [_rank(rank) for rank in recording.ranks],
        "left_out": [left.to_json() for left in recording.left],
        "notes": list(recording.notes),
    }


def _rank(rank: Rank) -> dict[str, Any]:
    counts = np.bincount(rank.slices.what, minlength=len(What))
    launched, found_launches = launches(rank)
    known = np.array([fact.shapes is not None for fact in rank.facts] + [False], bool)
    ops = rank.slices.facts[rank.slices.what == What.OP]
    return {
        "rank": rank.number,
        "world": rank.world,
        "file": rank.file,
        "host": rank.host,
        "gpus": [{"number": number, "name": name} for number, name in rank.devices],
        "span_s": span(rank) / FEMTO,
        "slices": {what.name.lower(): int(counts[what]) for what in What},
        "steps": len(of_rank(rank)),
        "ops_with_shapes": int(known[ops].sum()),
        "launched": launched,
        "launches_found": found_launches,
        "clock_offset_s": rank.shift / FEMTO,
    }


def span(rank: Rank) -> int:
    """fs from the first start to the last end."""
    return int(rank.slices.end.max() - rank.slices.start.min()) if len(rank.slices) else 0


def launches(rank: Rank) -> tuple[int, int]:
    """Kernels, copies and sets of a rank, and how many of them have their call in the recording."""
    slices = rank.slices
    on_device = (slices.what >= What.KERNEL) & (slices.what < What.WAIT)
    called = slices.link[(slices.what == What.CALL) & (slices.link >= 0)]
    return int(on_device.sum()), int(np.isin(slices.link[on_device], called).sum())


def text(recording: Recording) -> str:
    """A table of the ranks, what was assumed, and what was left out."""
    ranks = [_rank(rank) for rank in recording.ranks]
    columns = [
        Column("rank", [str(rank["rank"]) for rank in ranks]),
        Column("time", [format_quantity(rank["span_s"], "s") for rank in ranks]),
        Column("steps", [str(rank["steps"]) for rank in ranks]),
        Column("ops", [str(rank["slices"]["op"]) for rank in ranks]),
        Column("with shapes", [str(rank["ops_with_shapes"]) for rank in ranks]),
        Column("calls", [str(rank["slices"]["call"]) for rank in ranks]),
        Column("on GPUs", [str(rank["launched"]) for rank in ranks]),
        Column("launch found", [str(rank["launches_found"]) for rank in ranks]),
        Column("GPU", [", ".join(sorted({gpu["name"] for gpu in rank["gpus"]})) for rank in ranks], right=False, widest=40),
    ]
    lines = aligned(columns)
    lines += [f"  note: {note}" for note in recording.notes]
    return "\n".join([*lines, *_left(recording)]) + "\n"


def _left(recording: Recording) -> Iterator[str]:
    recorded = sum(span(rank) for rank in recording.ranks)  # integers
    for left in recording.left:
        share = ""
        if left.duration and recorded:
            share = f", {format_quantity(left.duration / FEMTO, 's')} ({format_share(left.duration / recorded)} of the time)"
        yield f"  left out: {left.count} x {one_line(left.name)}{share}: {left.why}"
