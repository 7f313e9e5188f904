"""The content of a recording: a table of ranks, the assumptions of its reader, and omitted events; also as a JSON document."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hwsim.formats import format_quantity, format_share
from hwsim.importers.recording import Rank, Recording, What
from hwsim.importers.steps import of_rank
from hwsim.spec.mistakes import one_line
from hwsim.ticks import FEMTO
from hwsim.views.kit.lines import wrap_lines
from hwsim.views.kit.table import Column, align_columns

MAX_RANKS: Final = 4  # rows of the table
MAX_OMITTED: Final = 3  # kinds of omitted events without a duration


def as_dict(recording: Recording) -> dict[str, Any]:
    """Return the document `hwsim: import/2`."""
    return {
        "hwsim": "import/2",
        "format": recording.format,
        "begin_s": recording.zero,
        "ranks": [_rank(rank) for rank in recording.ranks],
        "omitted": [left.to_json() for left in recording.left],
        "notes": list(recording.notes),
    }


def _rank(rank: Rank) -> dict[str, Any]:
    counts = np.bincount(rank.slices.what, minlength=len(What))
    launched, found_launches = launches(rank)
    has_shapes = np.array([fact.shapes is not None for fact in rank.facts] + [False], bool)
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
        "ops_with_shapes": int(has_shapes[ops].sum()),
        "launched": launched,
        "launches_found": found_launches,
        "clock_offset_s": rank.shift / FEMTO,
    }


def span(rank: Rank) -> int:
    """Return the time from the first start to the last end in a rank's file (fs)."""
    return int(rank.slices.end.max() - rank.slices.start.min()) if len(rank.slices) else 0


def launches(rank: Rank) -> tuple[int, int]:
    """Return the number of kernels, copies and memsets of a rank, and the number of those whose launching call was recorded."""
    slices = rank.slices
    on_device = (slices.what >= What.KERNEL) & (slices.what < What.WAIT)
    called = slices.link[(slices.what == What.CALL) & (slices.link >= 0)]
    return int(on_device.sum()), int(np.isin(slices.link[on_device], called).sum())


def text(recording: Recording) -> list[str]:
    """Return the table of ranks and the lines on omitted events."""
    ranks = [_rank(rank) for rank in recording.ranks[:MAX_RANKS]]
    columns = [
        Column("rank", [str(rank["rank"]) for rank in ranks]),
        Column("time", [format_quantity(rank["span_s"], "s") for rank in ranks]),
        Column("steps", [str(rank["steps"]) for rank in ranks]),
        Column("ops", [str(rank["slices"]["op"]) for rank in ranks]),
        Column("with shapes", [str(rank["ops_with_shapes"]) for rank in ranks]),
        Column("runtime calls", [str(rank["slices"]["call"]) for rank in ranks]),
        Column("GPU ops", [str(rank["launched"]) for rank in ranks]),
        Column("with launch", [str(rank["launches_found"]) for rank in ranks]),
    ]
    more = len(recording.ranks) - MAX_RANKS
    return [*align_columns(columns), *([f"  {more} more ranks: --json"] if more > 0 else []), *_omitted(recording)]


def _omitted(recording: Recording) -> list[str]:
    recorded, lines = max(1, sum(span(rank) for rank in recording.ranks)), []  # integers
    for left in (left for left in recording.left if left.duration):
        time = f"{format_quantity(left.duration / FEMTO, 's')} ({format_share(left.duration / recorded)} of the time)"
        lines += wrap_lines(f"omitted: {left.count:,} x {one_line(left.name)}, {time}: {left.why}", 2, deeper=11)
    untimed = [left for left in recording.left if not left.duration]
    names = ", ".join(f"{left.count:,} x {one_line(left.name)}" for left in untimed[:MAX_OMITTED])
    more = f" and {len(untimed) - MAX_OMITTED} more kinds" if len(untimed) > MAX_OMITTED else ""
    why = "events without a duration, --json has the reasons" if len(untimed) > 1 else untimed[0].why if untimed else ""
    return [*lines, *(wrap_lines(f"omitted: {names}{more}: {why}", 2, deeper=11) if untimed else [])]
