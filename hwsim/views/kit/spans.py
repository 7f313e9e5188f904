"""Time spans as fractions of the pixel columns of a figure, so that no span is drawn longer than it is."""

from __future__ import annotations

import numpy as np

from hwsim.graph.opgraph import Floats, Ints


def covered_fractions(low: Floats, high: Floats, edges: Floats) -> Floats:
    """Return the covered fraction of each column; overlapping spans count once.

    Args:
        low, high: starts and ends of the spans, sorted by start.
        edges: edges of the columns.

    >>> covered_fractions(np.array([0.0, 0.5]), np.array([0.25, 1.0]), np.linspace(0.0, 1.0, 3)).tolist()
    [0.5, 1.0]
    """
    if not len(low):
        return np.zeros(len(edges) - 1)
    ends = np.maximum.accumulate(high)
    begins = np.maximum(low, np.concatenate([[low[0]], ends[:-1]]))
    lengths = np.maximum(ends - begins, 0.0)
    before = np.concatenate([[0.0], np.cumsum(lengths)])
    place = np.searchsorted(begins, edges, side="right")
    last = np.maximum(place - 1, 0)
    total = before[last] + np.where(place > 0, np.clip(edges - begins[last], 0.0, lengths[last]), 0.0)
    parts: Floats = np.clip(np.diff(total) / np.diff(edges), 0.0, 1.0)
    return parts


def merge_spans(start: Floats, end: Floats, colour: Ints, pixel: float) -> tuple[Floats, Floats, Ints]:
    """Merge spans of one colour that are less than a pixel apart; spans hidden by others are removed.

    Args:
        start, end: starts and ends of the spans.
        colour: colour of each span.
        pixel: width of a pixel; 0 to merge nothing.

    >>> start = np.array([0.0, 1.0, 2.0])
    >>> [each.tolist() for each in merge_spans(start, start + 0.5, np.array([0, 0, 1]), 0.6)]
    [[0.0, 2.0], [1.6, 2.6], [0, 1]]
    """
    if not len(start) or not pixel:
        return start, end, colour
    column = np.floor(start / pixel)
    starts_pixel = np.concatenate([[True], column[1:] != column[:-1]])
    wide = end - start >= pixel
    keep = starts_pixel | wide  # the first short span of a pixel represents the others
    low, high, shade = start[keep], np.maximum(end[keep], start[keep] + pixel), colour[keep]
    heads = np.concatenate([[True], (low[1:] - high[:-1] > pixel) | (shade[1:] != shade[:-1])])
    firsts = np.flatnonzero(heads)
    return low[firsts], np.maximum.reduceat(high, firsts), shade[firsts]
