"""Sweeps, and studies of files: the ways in."""

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
        machine, workload: a path, a name of the library, the text of a file, or what it would say.
        vary: paths as of `set`, each with its values or a text such as "1..64:x2"; the last one turns fastest.
        set: what else to change, the same at every point.
        workers: processes (1: only this one; None: one per core if the study takes more than a second).
        executor: where points run instead, any `concurrent.futures.Executor` that pickles its tasks.
        progress: called with the points done and the points of the study.
        by: the number that rows are compared by: time, samples/s, ttft_p95, peak_memory, busy:gpu0.compute, or a path into the
            JSON of a result. Default: time, or work a second where the points do different amounts of work.
        paying: prices, a way to pay and a site, for `energy`, `carbon` and `cost` (`hwsim.Paying`).
        journal: a file that keeps what is finished; the same sweep goes on from it.

    Raises:
        SpecError: a file cannot be read, or the grid makes no sense.
        Interrupted: Ctrl-C; it has the points finished so far.

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
    """Run the study of a file (`hwsim: study/1`), arguments as of `sweep`.

    Args:
        journal: a file that keeps what is finished; the same study goes on from it.
        paying: instead of what the file says of prices and site.

    Raises:
        SpecError: the file has mistakes, or the journal is of something else.
        Interrupted: Ctrl-C; it has the points finished so far.
    """
    parsed = file if isinstance(file, StudyFile) else load_study(file)
    both = read_source("machine", parsed.machine), read_source("workload", parsed.workload)
    _refuse_none(workers)
    parsed.check(*both)
    case = Study(*both, parsed.points, parsed.settings, parsed.measures, paying=paying or parsed.paying)
    return run(case, workers=workers, executor=executor, progress=progress, journal=journal)


def check_study(tree: Tree) -> None:
    """Find the mistakes of a study without running it: of its file, of the files it names, and of paths that lead nowhere.

    Raises:
        SpecError: all of them.
    """
    parsed = load_study(tree)
    parsed.check(read_source("machine", parsed.machine), read_source("workload", parsed.workload))


def _refuse_none(workers: int | None) -> None:
    if workers is not None and workers < 1:
        raise SpecError.of(None, f"a study needs at least one worker, not {workers}")
