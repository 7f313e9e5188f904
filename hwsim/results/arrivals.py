"""Collectives as their ranks see them: one span from arriving to leaving, the first part of it waiting for the others.

In the op graph a rank's arrival and its leaving are ops of its queue that take no time, and what the ranks do together are
ops of no queue between them.  A kernel of a communication library starts when its rank arrives and spins until the others
have come: so it is shown.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hwsim.graph.opgraph import Ints
from hwsim.records import dataclass
from hwsim.results.timeline import Timeline

ARRIVE = "arrive"  # kind of the label


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Per op: when it begins as its rank sees it, how long that is waiting for others (fs), whether another op shows it."""

    begin: Ints
    waiting: Ints
    hidden: NDArray[np.bool_]
    leaves: NDArray[np.bool_]


def arrivals(timeline: Timeline) -> Arrivals | None:
    """Every leaving with its arrival; None if nothing ever arrives."""
    flat = timeline.flat
    labels = flat.graph.labels
    if not any(label.kind == ARRIVE for label in labels) or not len(flat):
        return None
    arrives = np.array([label.kind == ARRIVE for label in labels], np.bool_)[flat.label]
    queued = np.flatnonzero(flat.queue >= 0)
    queued = queued[np.argsort(flat.queue[queued], kind="stable")]  # queue by queue, each in the order of the program
    here, following = queued[:-1], queued[1:]
    alike = {(label.name, label.device, label.program): number for number, label in enumerate(labels) if label.kind == ARRIVE}
    arrival_of = np.array([alike.get((each.name, each.device, each.program), -1) for each in labels], np.int64)
    pairs = arrives[here] & ~arrives[following] & (flat.queue[here] == flat.queue[following])
    pairs &= arrival_of[flat.label[following]] == flat.label[here]
    came, left = here[pairs], following[pairs]
    source, target = flat.edges()
    step = (flat.queue < 0) & (flat.cost >= 0)
    starts = arrives[source] & step[target]
    first = timeline.end.copy()
    first[came] = timeline.start[left]
    np.minimum.at(first, source[starts], timeline.start[target[starts]])
    begin, waiting = timeline.start.copy(), np.zeros_like(timeline.start)
    begin[left] = timeline.start[came]
    waiting[left] = np.maximum(first[came] - timeline.start[came], 0)
    hidden, leaves = np.zeros(len(flat), np.bool_), np.zeros(len(flat), np.bool_)
    hidden[came] = leaves[left] = True
    met = () if flat.graph.alike is None else tuple(flat.graph.alike.met)
    hidden |= step & (np.isin(flat.label, flat.label[left]) | np.isin(flat.label, met))  # in one op: every rank shows it
    return Arrivals(begin, waiting, hidden, leaves)
