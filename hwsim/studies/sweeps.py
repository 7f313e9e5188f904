"""Entry points of sweeps and study files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING

from hwsim.api import Source
from hwsim.spec import SpecError, Tree
from hwsim.studies.file import StudyFile, load_study
from hwsim.studies.grid import grid
from hwsim.studies.point import read_source
from hwsim.studies.study_run import Progress, Study, run
from hwsim.studies.table import Sweep

if TYPE_CHECKING:
    from hwsim.costs.bill import Paying


def sweep(
    machine: Source,
    workload: Source,
    vary: Mapping[str, Sequence[object] | str],
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the word of the command line)
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    journal: str | Path | None = None,
    by: str = "",
    paying: Paying | None = None,
) -> Sweep:
    """Simulate every combination of the values: a study with a grid.

    A point that cannot be simulated is a row with an error. The rows do not depend on where or in what order points ran.

    Args:
        machine: path, library name or content of a file.
        workload: path, library name or content of a file.
        vary: values by path, as a list or text such as "1..64:x2"; the last path varies fastest.
        set: values that apply to every point, by path.
        workers: number of processes (1: only this one; None: one per core if the study takes more than a second).
        executor: any `concurrent.futures.Executor` that pickles its tasks, which runs the points instead.
        progress: called with the numbers of finished points and all points.
        by: measure that ranks the rows: time, samples/s, ttft_p95, peak_memory, busy:gpu0.compute, or a path into the JSON of a
            result. Default: time, or throughput if the points do different amounts of work.
        paying: prices, payment option and site, for `energy`, `carbon` and `cost` (`hwsim.Paying`).
        journal: file that saves finished points; the same sweep resumes from it.

    Raises:
        SpecError: a file cannot be read, or the grid is invalid.
        Interrupted: Ctrl-C; contains the finished points.

    >>> study = sweep("d2l-laptop", "d2l/async-loop", {"blocking": [True, False]}, set={"n": 100})
    >>> [row.makespan_s for row in study.rows]
    [0.005, 0.00302]
    """
    points = grid(vary)
    settings = dict(set or {})
    if twice := [path for path in points.paths if path in settings]:
        raise SpecError.of(None, f"'{twice[0]}' is both set and varied")
    both = read_source("machine", machine), read_source("workload", workload)
    _refuse_none(workers)
    study = Study(*both, points, settings, (by,) if by else (), paying=paying)
    return run(study, workers=workers, executor=executor, progress=progress, journal=journal)


def study(
    file: Source | StudyFile,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    journal: str | Path | None = None,
    paying: Paying | None = None,
) -> Sweep:
    """Run a study file (`hwsim: study/1`); other arguments as in `sweep`.

    Args:
        file: study file.
        journal: file that saves finished points; the same study resumes from it.
        paying: payment option that overrides the prices and the site in the file.

    Raises:
        SpecError: the file has mistakes, or the journal belongs to another study.
        Interrupted: Ctrl-C; contains the finished points.
    """
    parsed = file if isinstance(file, StudyFile) else load_study(file)
    both = read_source("machine", parsed.machine), read_source("workload", parsed.workload)
    _refuse_none(workers)
    parsed.check(*both)
    case = Study(*both, parsed.points, parsed.settings, parsed.measures, paying=paying or parsed.paying)
    return run(case, workers=workers, executor=executor, progress=progress, journal=journal)


def check_study(tree: Tree) -> None:
    """Check a study, its machine and workload, and its paths, without running it.

    Raises:
        SpecError: all mistakes.
    """
    parsed = load_study(tree)
    parsed.check(read_source("machine", parsed.machine), read_source("workload", parsed.workload))


def _refuse_none(workers: int | None) -> None:
    if workers is not None and workers < 1:
        raise SpecError.of(None, f"a study needs at least one worker, not {workers}")
