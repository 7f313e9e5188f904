"""Compare two machines, workloads or runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from hwsim.api import Run, Source
from hwsim.comparing import Comparison, of_run, of_sides
from hwsim.comparing import compare as compared
from hwsim.costs.bill import Paying
from hwsim.spec import SpecError, Tree, did_you_mean, names, read, tree_of

FORMS: Final = (
    "machine, machine, workload; machine, workload, workload; two of each; or a machine and a workload with set_a or set_b"
)


def compare(
    *files: Source | Run,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the word of the command line)
    set_a: Mapping[str, object] | None = None,
    set_b: Mapping[str, object] | None = None,
    by: str = "",
    waterfall: bool = True,
    interval: bool | Literal["runs"] = True,
    paying: Paying | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Compare two machines with a workload, two workloads on a machine, or two runs.

    Args:
        files: two runs; or paths, library names or file contents of two machines and a workload, a machine and two workloads,
            two of each (machines first), or one of each with `set_a` or `set_b`.
        set: paths and values to change in both.
        set_a: paths and values to change in the first.
        set_b: paths and values to change in the second.
        by: measure to compare, as in a sweep; default: time, or throughput if the amounts of work differ.
        waterfall: attribute the difference to each change of the files, by further runs.
        interval: "runs": compute both ends of the intervals by further runs, also for services.
        paying: prices, payment option and site, for `energy`, `carbon` and `cost` (`hwsim.Paying`).
        progress: called with the numbers of finished and planned further runs.

    Raises:
        SpecError: the files have mistakes, or the measure does not exist.
        TypeError: the files are not a pair.

    >>> both = compare("d2l-laptop", "d2l/async-loop", set_a={"blocking": True}, set_b={"blocking": False})
    >>> [f"{value:.3f}" for value in both.values]
    ['0.050', '0.030']
    """
    runs = [run for run in files if isinstance(run, Run)]
    if runs:
        if len(runs) != 2 or len(files) != 2:
            raise TypeError("expected two runs, or files")
        if set or set_a or set_b:
            raise TypeError("`set` cannot change a run")
        first, second = (of_run(run, run.to_json) for run in runs)
        return of_sides(first, second, by)
    kinds: dict[str, list[Source]] = {"machine": [], "workload": []}
    for file in files:
        assert not isinstance(file, Run)
        kinds[kind_of(file)].append(file)
    machines, workloads = kinds["machine"], kinds["workload"]
    if not is_pair(machines, workloads, own=bool(set_a or set_b)):
        raise TypeError(f"nothing to compare: {len(machines)} machines, {len(workloads)} workloads; accepted: {FORMS}")
    return compared(
        (machines[0], machines[-1]), (workloads[0], workloads[-1]), set=set, set_a=set_a, set_b=set_b, by=by,
        attribute=waterfall, interval=interval, paying=paying, progress=progress,
    )  # fmt: skip


def is_pair(machines: Sequence[object], workloads: Sequence[object], *, own: bool) -> bool:
    """Whether these machines and workloads make two runs; `own`: settings of each run make two runs of one pair."""
    return 1 <= len(machines) <= 2 and 1 <= len(workloads) <= 2 and (len(machines) + len(workloads) > 2 or own)


def kind_of(source: Any) -> Literal["machine", "workload"]:
    """Return the kind of a file, "machine" or "workload": by its first line, or by the library section with its name.

    Raises:
        SpecError: the file is neither; the hint for an unknown name is the nearest library name.
    """
    if isinstance(source, str) and "\n" not in source and not Path(source).is_file():
        if source in names("machine"):
            return "machine"
        if source in names("workload"):
            return "workload"
        candidates = (*names("machine"), *names("workload"))
        ends = [candidate for candidate in candidates if candidate.rpartition("/")[2] == source]
        hint = did_you_mean(ends[0], ends) if ends else did_you_mean(source, candidates)
        raise SpecError.of(None, f"there is no machine or workload '{source}', and no file of that name", hint)
    if isinstance(source, Mapping):
        source = tree_of(source)
    tree = source if isinstance(source, Tree) else read(Path(source) if "\n" not in str(source) else source)
    form = tree.text("hwsim") or ""
    if form.startswith("machine/"):
        return "machine"
    if form.startswith("workload/"):
        return "workload"
    raise SpecError.of(tree.place, f"expected a machine or a workload, got `hwsim: {json.dumps(form)}`")
