"""A run that `hwsim simulate --json --ops` wrote, against a recording; it does not say what an idle GPU waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from hwsim.comparing.recorded.played import Played, Spans, idle_unknown
from hwsim.comparing.recorded.where import Where, gpus_of, of_op
from hwsim.comparing.sides import interval_of
from hwsim.graph.opgraph import Label
from hwsim.spec import SpecError
from hwsim.ticks import FEMTO

WITHOUT: Final = "what idle GPUs wait for: it is not in the JSON of a run"
_OF_KIND: Final[Mapping[str, Where]] = {
    "pool": Where.WAITING,
    "wait": Where.WAITING,
    "dispatch": Where.HOST,
    "return": Where.HOST,
}


def of_document(document: Mapping[str, Any], called: str, *, has_marks: bool) -> Played:
    """The run of a document `hwsim: result/1`; has_marks: turns of its loop are steps, as the recording marks them.

    Raises:
        SpecError: it has no ops.
    """
    rows = document.get("ops")
    if not rows:
        raise SpecError.of(None, f"{called}: this run has no ops", "write it with `hwsim simulate ... --json --ops`")
    labels = [Label(str(row["name"]), str(row["kind"]), str(row["device"])) for row in rows]
    gpus = gpus_of({label.device for label in labels}, document.get("devices", {}))
    names = {(label.name.partition(": ")[0] or label.kind, label.kind): 0 for label in labels}
    numbers = {name: number for number, name in enumerate(names)}
    devices = tuple(dict.fromkeys(label.device for label in labels))
    times = {
        key: np.array([round(float(row[f"{key}_s"]) * FEMTO) for row in rows], np.int64) for key in ("start", "end", "waiting")
    }
    order = np.argsort(times["start"], kind="stable")
    columns = (
        [numbers[label.name.partition(": ")[0] or label.kind, label.kind] for label in labels],
        [devices.index(label.device) for label in labels],
        [of_op(label, gpus) for label in labels],
    )
    name, device, place = (np.array(column, np.int64)[order] for column in columns)
    spans = Spans(
        name, device, place, times["start"][order], times["end"][order], times["waiting"][order], np.ones(len(rows), np.int64)
    )
    makespan = int(document["makespan_fs"])
    turns = 1 + max(int(row.get("iteration", 0)) for row in rows) if has_marks else 1
    trained = document.get("trainings") or [{"steps": turns}]
    sure = document.get("interval")
    return Played(
        "simulated",
        f"{document['workload']}  on  {document['machine']}",
        makespan,
        max(1, int(trained[0].get("steps", 1))),
        _path(document["limited_by"], makespan, gpus),
        idle_unknown(spans, devices, makespan, gpus),
        devices,
        tuple(names),
        spans,
        {},
        (WITHOUT,),
        interval_of(sure, float(document["makespan_s"])) if sure and not document.get("serving") else None,
    )


def _path(rows: list[Mapping[str, Any]], makespan: int, gpus: frozenset[str]) -> dict[Where, int]:
    spent = dict.fromkeys(Where, 0)
    for row in rows:
        spent[_of_cause(str(row["kind"]), str(row["cause"]), gpus)] += round(float(row["time_s"]) * FEMTO)
    longest = max(spent, key=lambda where: spent[where])
    spent[longest] += makespan - sum(spent.values())  # integers: times in seconds have lost their last digits
    return spent


def _of_cause(kind: str, cause: str, gpus: frozenset[str]) -> Where:
    """The place of a cause in words.

    >>> causes = (("capacity", "gpu0.memory"), ("capacity", "slots:psw->gpu0"), ("floor", "flow of x on gpu0"), ("time", "x"))
    >>> [_of_cause(kind, cause, frozenset({"gpu0"})).words for kind, cause in causes]
    ['kernels', 'transfer', 'transfer', 'host']
    """
    if kind in _OF_KIND:
        return _OF_KIND[kind]
    if ":" in cause or "link " in cause or cause.startswith("flow of "):
        return Where.TRANSFER
    device = cause.rpartition(" on ")[2].partition(" ")[0] if kind != "capacity" else cause.rpartition(".")[0]
    if device not in gpus:
        return Where.HOST if gpus else Where.KERNELS
    return Where.LAUNCH if kind == "latency" else Where.KERNELS
