"""Activities of a run: the time of each, the part that the run waited for, and the part that overlapped something else."""

from __future__ import annotations

from typing import Final

import numpy as np

from hwsim import ticks
from hwsim.formats import family
from hwsim.graph.opgraph import Ints, Label
from hwsim.records import dataclass
from hwsim.results.cause import Cause
from hwsim.results.critical import CriticalPath
from hwsim.results.timeline import Timeline

COMPUTING: Final = frozenset({"compute", "matmul", "elementwise", "reduce", "random"})
AWAITED: Final = {"start": "the start of a job", "arrivals": "a request", "starting": "a replica to start"}
COPYING: Final = frozenset({"copy", "send", "asnumpy", "item", "print"})


@dataclass(frozen=True, slots=True)
class Activity:
    """All ops of one sort on one device (or on the devices of a family).

    Args:
        sort: "compute", "copy" or the kind of the ops.
        names: names of the ops; those first that the run waited for longest.
        busy_fs: time in which at least one of them ran.
        path_fs: the part of it in which the run waited for them.
        work_fs: sum of their times, more than `busy_fs` if they ran in parallel.
        alone: "first", "last" or "other" if the run waited for only one of several.
        bound: what held them back for most of `path_fs`, in words: a capacity, a time or a latency.
        bound_fs: the part of `path_fs` due to it.
        waited: the device that the run waited for, if it is one of several that did less.
    """

    sort: str
    device: str
    names: tuple[str, ...]
    count: int
    busy_fs: int
    path_fs: int
    work_fs: int
    alone: str = ""
    bound: str = ""
    bound_fs: int = 0
    waited: str = ""

    @property
    def awaited(self) -> str:
        """What the run waits for, if nothing is done meanwhile."""
        return "" if self.device else AWAITED.get(self.sort, "")

    @property
    def hidden_fs(self) -> int:
        """Time in which they ran and the run waited for something else."""
        return self.busy_fs - self.path_fs


def activities(timeline: Timeline, path: CriticalPath) -> tuple[Activity, ...]:
    """Activities that took time: those first that the run waited for longest, then the longest."""
    flat = timeline.flat
    sorts: dict[tuple[str, str], int] = {}
    of_label = np.array([sorts.setdefault(_sort(label), len(sorts)) for label in flat.graph.labels], np.int64)
    number_of = {label: number for number, label in enumerate(flat.graph.labels)}
    took = (timeline.end > timeline.start).astype(np.bool_)
    waiting = np.array([cause.kind == "wait" for cause in path.causes], np.bool_)
    kept = ~waiting[path.cause] if len(path) else np.empty(0, np.bool_)
    on_path, spent, why = path.op[kept], (path.end - path.start)[kept], path.cause[kept]
    group = of_label[flat.label[on_path]]
    done = []
    for (sort, device), number in sorts.items():
        ops = np.flatnonzero(took & (of_label[flat.label] == number))
        if not len(ops):
            continue
        waits = group == number
        waited_for = ticks.distinct(on_path[waits])
        used = [flat.graph.labels[one] for one in ticks.distinct(flat.label[ops]).tolist()]
        devices = {label.device for label in used}
        bound, bound_fs = _bound(path, spent[waits], why[waits])
        waited_fs = ticks.totals(spent[waits], flat.label[on_path[waits]], len(flat.graph.labels))
        named = sorted(used, key=lambda label: -waited_fs[number_of[label]])
        done.append(
            Activity(
                sort=sort,
                device=min(devices) if len(devices) == 1 else device,
                names=tuple(dict.fromkeys(label.name for label in named)),
                count=len(ops),
                busy_fs=ticks.covered(timeline.start[ops], timeline.end[ops]),
                path_fs=ticks.total(spent[waits]),
                work_fs=ticks.total(timeline.end[ops] - timeline.start[ops]),
                alone=_which(timeline, ops, int(waited_for[0])) if len(waited_for) == 1 < len(ops) else "",
                bound=bound,
                bound_fs=bound_fs,
                waited=_waited(timeline, ops, waited_for) if len(devices) > 1 else "",
            )
        )
    return tuple(sorted(done, key=lambda activity: (-activity.path_fs, -activity.busy_fs, activity.sort, activity.device)))


def _sort(label: Label) -> tuple[str, str]:
    sort = "compute" if label.kind in COMPUTING else "copy" if label.kind in COPYING else label.kind
    return sort, family(label.device)


def _bound(path: CriticalPath, spent: Ints, why: Ints) -> tuple[str, int]:
    """What causes most of this time, a family of capacities as one, and its part of it (fs)."""
    total: dict[str, int] = {}
    names: dict[str, list[str]] = {}
    for number in ticks.distinct(why).tolist():
        name = _words(path.causes[number])
        names.setdefault(family(name), []).append(name)
        total[family(name)] = total.get(family(name), 0) + ticks.total(spent[why == number])
    longest = max(total, key=lambda name: (total[name], name), default="")
    return (longest if len(names[longest]) > 1 else names[longest][0], total[longest]) if longest else ("", 0)


def _words(cause: Cause) -> str:
    match cause.kind:
        case "time":
            return "the time that the workload gives it"
        case "dispatch" | "return":
            return "the program, which issues ops and waits for them"
    return cause.of_op


def _waited(timeline: Timeline, ops: Ints, waited_for: Ints) -> str:
    """The device that the run waited for if it is a single one and no other worked as long; else ""."""
    flat = timeline.flat
    late = {flat.graph.labels[one].device for one in ticks.distinct(flat.label[waited_for]).tolist()}
    if len(late) != 1:
        return ""
    (device,) = late
    worked: dict[str, int] = {}
    for label in ticks.distinct(flat.label[ops]).tolist():
        members = ops[flat.label[ops] == label]
        name = flat.graph.labels[label].device
        worked[name] = worked.get(name, 0) + ticks.total(timeline.end[members] - timeline.start[members])
    return device if all(fs < worked[device] for name, fs in worked.items() if name != device) else ""


def _which(timeline: Timeline, ops: Ints, one: int) -> str:
    start = timeline.start[ops]
    if timeline.start[one] == start.min():
        return "first"
    return "last" if timeline.start[one] == start.max() else "another"
