"""Run a study: a workload on a machine once for each combination of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from functools import partial
from pathlib import Path

from hwsim.api import Source
from hwsim.spec import Mistake, SpecError
from hwsim.study.csv_file import earlier_points
from hwsim.study.grid import Grid, written
from hwsim.study.measures import TIME, measure
from hwsim.study.point import Content, Outcome, changed, fingerprint_of, read_source, run_point
from hwsim.study.pool import run_all
from hwsim.study.provenance import known_alike
from hwsim.study.table import Sweep
from hwsim.workload.sources import title

Progress = Callable[[int, int], None]  # points done, points of the study


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a study; `sweep` has the points that were finished."""

    def __init__(self, sweep: Sweep) -> None:
        super().__init__(f"{len(sweep.rows)} of {sweep.points} points were finished")
        self.sweep = sweep


def sweep(
    machine: Source,
    workload: Source,
    vary: Mapping[str, Sequence[object] | str],
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the word of the command line)
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    resume: str | Path | None = None,
    by: str = "",
) -> Sweep:
    """Simulate every combination of the values.

    A point that cannot be simulated is a row with an error. The rows do not depend on where or in what order points ran.

    Args:
        machine, workload: a path, a name of the library, the text of a file, or what it would say.
        vary: paths as of `set`, each with its values or a text such as "1..64:x2"; the last one turns fastest.
        set: what else to change, the same at every point.
        workers: processes (1: only this one; None: one per core if the study takes more than a second).
        executor: where points run instead, any `concurrent.futures.Executor` that pickles its tasks.
        progress: called with the points done and the points of the study.
        by: the number that rows are compared by: time, samples/s, ttft_p95, peak_memory, busy:gpu0.compute, or a path into the
            JSON of a result. Default: time, or work a second where the points do different amounts of work.
        resume: a CSV file of an earlier sweep; a point in it whose machine and workload have not changed is not run again.

    Raises:
        SpecError: a file cannot be read, or the grid makes no sense.
        Interrupted: Ctrl-C; it has the points finished so far.

    >>> study = sweep("d2l-laptop", "d2l/async-loop", {"blocking": [True, False]}, set={"n": 100})
    >>> [row.makespan_s for row in study.rows]
    [0.005, 0.00302]
    """
    grid = Grid.of(vary)
    settings = dict(set or {})
    if twice := [path for path in grid.paths if path in settings]:
        raise SpecError([Mistake(None, f"'{twice[0]}' is both set and varied")])
    both = read_source("machine", machine), read_source("workload", workload)
    if workers is not None and workers < 1:
        raise SpecError([Mistake(None, f"a study needs at least one worker, not {workers}")])
    earlier = earlier_points(resume) if resume is not None else {}
    points = [{**settings, **dict(zip(grid.paths, values, strict=True))} for values in grid]
    outcomes: dict[int, Outcome] = {}
    try:
        for number, point in enumerate(points if earlier else []):
            if (outcome := _earlier(earlier, *both, point)) is not None and _has(outcome, by):
                outcomes[number] = outcome
        tasks = {n: partial(run_point, *both, point, by) for n, point in enumerate(points) if n not in outcomes}
        with closing(run_all(tasks, workers=workers, executor=executor)) as finished:
            for number, outcome in finished:
                outcomes[number] = outcome
                if progress is not None:
                    progress(len(outcomes), len(points))
    except KeyboardInterrupt:
        raise Interrupted(_table(grid, both, settings, outcomes, by)) from None
    return _table(grid, both, settings, outcomes, by)


def _earlier(earlier: Mapping[str, Outcome], machine: Content, workload: Content, point: Mapping[str, object]) -> Outcome | None:
    try:
        return earlier.get(fingerprint_of(*changed(machine, workload, point)[:2]))
    except SpecError:
        return None  # the error is reported when the point is run


def _has(outcome: Outcome, by: str) -> bool:
    """Whether an earlier outcome has the number that is asked for."""
    column = measure(by).column if by else TIME
    return column == TIME or column in dict(outcome.measures)


def _table(
    grid: Grid, both: tuple[Content, Content], settings: Mapping[str, object], outcomes: Mapping[int, Outcome], by: str
) -> Sweep:
    machine, workload = (title(file.tree.text("name") or "", file.tree, file.kind) for file in both)
    rows = [outcomes[number].at(values) for number, values in enumerate(grid) if number in outcomes]
    return Sweep(
        machine=machine,
        workload=workload,
        settings=tuple((path, written(value)) for path, value in settings.items()),
        vary=tuple(zip(grid.paths, grid.values, strict=True)),
        points=len(grid),
        by=by,
        rows=tuple(known_alike(grid.paths, rows)),
    )
