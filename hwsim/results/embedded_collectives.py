"""Collectives inside ops: the time in which an op waits for one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hwsim.graph.opgraph import Floats, Ints, TrainingRecord
from hwsim.results.timeline import Timeline


def collective_fractions(timeline: Timeline, trainings: Sequence[TrainingRecord], ops: Ints) -> Floats:
    """Return the fraction of each op in which it waits for a collective inside it; extra time of a slow device is computation."""
    flat = timeline.flat
    of_cost = np.zeros(len(flat.graph.costs) + 1)  # index -1: ops without a cost
    for training in trainings:
        for cost, part in training.inside:
            of_cost[cost] = part
    parts = of_cost[flat.cost[ops]]
    is_device = [capacity.unit == "s" for capacity in flat.graph.capacities]
    classes = np.where(parts > 0, timeline.flow_class[ops], -1)
    for number in set(classes[classes >= 0].tolist()):
        if not any(held.bound >= 0 and is_device[held.bound] for held in timeline.held(number)):
            continue
        history = [(pace.start, pace.pace, pace.bound) for pace in timeline.paces[number]]
        starts, alone = np.array([start for start, _, _ in history], object), timeline.alone[number]
        lost = np.array([1 - pace / alone if bound >= 0 and is_device[bound] else 0.0 for _, pace, bound in history])
        for place in np.flatnonzero(classes == number).tolist():
            begin, end = int(timeline.start[ops[place]]), int(timeline.end[ops[place]])
            edges = np.clip(starts, begin, end)
            took = np.diff(np.append(edges, end)).astype(np.float64)
            parts[place] *= 1.0 - float(took @ lost) / (end - begin)
    return parts
