"""An animated timeline: ops grow in their rows while they run; gaps are bubbles."""

from __future__ import annotations

from typing import Final

import numpy as np

from hwsim.results.result import Result
from hwsim.views.animate.scene import FOOT, TOP, WIDTH, Knot, NothingMoves, Scene, SceneBox, Token, Words
from hwsim.views.gantt.draw import finding
from hwsim.views.gantt.rows import rows_of
from hwsim.views.kit.figure import run_caption
from hwsim.views.kit.spans import merge_spans

ROWS: Final = 9  # largest number of rows
PIECES: Final = 1200  # largest number of segments
FEW: Final = 60  # largest number of segments of a row that are not merged
LEFT: Final = 150.0  # left margin (px)
RIGHT: Final = 20.0  # right margin (px)


def scene(result: Result) -> Scene:
    """Return the animated rows of the timeline; for a training, the compute rows; for many ops, the first part of the run.

    Raises:
        NothingMoves: the run has no ops.
    """
    timeline = rows_of(result)
    rows = timeline.rows
    if not rows:
        raise NothingMoves("this run has no ops")
    computing = tuple(row for row in rows if row.kind == "compute")
    if result.simulated.flat.graph.trainings and len(computing) > 1:
        rows = computing
    if len(rows) > ROWS:  # the busiest rows, in their order
        busiest = sorted(range(len(rows)), key=lambda number: -rows[number].working_s)[:ROWS]
        rows = tuple(rows[number] for number in sorted(busiest))
    pixel = result.makespan_s / WIDTH / 2  # segments closer than this look like one
    pieces = [merge_spans(row.low, row.high, 2 * row.name_of + row.waits, pixel if len(row.low) > FEW else 0.0) for row in rows]
    lows = np.sort(np.concatenate([low for low, _, _ in pieces]))
    end = float(lows[PIECES]) if len(lows) > PIECES else result.makespan_s
    scale = (WIDTH - LEFT - RIGHT) / (end or 1.0)
    pitch = min(44.0, (FOOT - TOP - 40.0) / len(rows))
    tokens, boxes, words = [], [], []
    for number, (row, spans) in enumerate(zip(rows, pieces, strict=True)):
        y = TOP + 12.0 + number * pitch
        boxes.append(SceneBox(LEFT, y, WIDTH - LEFT - RIGHT, 0.78 * pitch))
        words.append(Words(LEFT - 8, y + 0.5 * pitch, row.name.split("\n")[0], min(13.0, 0.6 * pitch), "end"))
        for low, high, kind in zip(*(column.tolist() for column in spans), strict=True):
            if low < end:
                name, waits = divmod(kind, 2)
                x, wide = LEFT + low * scale, (min(high, end) - low) * scale
                busy = (end * 2, end * 2) if waits else (low, min(high, end))
                knots = (Knot(low, x, y), Knot(end, x, y))
                tokens.append(Token(knots, wide, 0.78 * pitch, min(name, 7), busy, grows=True))
    left = LEFT
    drawn = {int(kind) // 2 for _, _, kinds in pieces for kind in np.unique(kinds)}
    for number, name in enumerate(timeline.names):
        if number not in drawn or left + 19 + 7.4 * len(name) > WIDTH - RIGHT - 76:
            continue
        boxes.append(SceneBox(left, FOOT - 26, 14, 12, colour=number))
        words.append(Words(left + 19, FOOT - 15, name, 12.0))
        left += 34 + 7.4 * len(name)
    words.append(Words(WIDTH - RIGHT, FOOT - 15, "pale: waiting", 12.0, "end", soft=True))
    part = f"the first {len(lows[:PIECES]):,} of {len(lows):,} segments" if end < result.makespan_s else ""
    below = run_caption(result.workload, result.machine, result.settings, part)
    return Scene(finding(result), below, 0.0, end, tuple(boxes), tuple(words), tuple(tokens), names=timeline.names)
