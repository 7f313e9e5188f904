"""Run the points of a study in any process and order, and resume from a journal."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import ExitStack, closing
from dataclasses import field
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from hwsim.records import dataclass
from hwsim.spec import Place, SpecError
from hwsim.studies.grid import Points, value_text
from hwsim.studies.journal import Journal
from hwsim.studies.point import Content, Outcome, run_point
from hwsim.studies.pool import Values, run_all
from hwsim.studies.provenance import known_alike
from hwsim.studies.table import Sweep
from hwsim.version import __version__
from hwsim.workload.sources import title

if TYPE_CHECKING:
    from hwsim.costs.bill import Paying

Progress = Callable[[int, int], None]  # points done, points of the study


class Interrupted(KeyboardInterrupt):
    """An interruption of a study by Ctrl-C or a journal that cannot be written; `sweep` has the finished points.

    error: reason why the journal cannot be written.
    status: exit status of a process that was ended by this signal.
    """

    def __init__(self, sweep: Sweep, error: OSError | None = None, number: int = signal.SIGINT) -> None:
        super().__init__(f"{len(sweep.rows)} of {sweep.points} points were finished")
        self.sweep, self.error, self.status = sweep, error, 128 + number


@dataclass(frozen=True, slots=True)
class Study:
    """A study: both files, its points, and the settings of all points.

    Args:
        measures: numbers that every row must have; the first ranks the rows.
        token: key by which the points share unchanged parts within a process.
        paying: payment option, for energy and cost.
    """

    machine: Content
    workload: Content
    points: Points
    settings: Mapping[str, object]
    measures: tuple[str, ...] = ()
    token: str = field(default_factory=lambda: token_hex(8), compare=False)
    paying: Paying | None = None

    def __call__(self, values: Values) -> Outcome:
        """Run one point."""
        settings = {**self.settings, **dict(zip(self.points.paths, values, strict=True))}
        more = () if self.paying is None else (self.paying,)
        return run_point(self.machine, self.workload, settings, self.measures, self.token, *more)

    def head(self) -> dict[str, Any]:
        """Return the head of the journal, which identifies the study."""
        parts = [
            self.machine.digest,
            self.workload.digest,
            *(f"{path}={value_text(value)}" for path, value in self.settings.items()),
        ]
        parts += [repr(self.paying)] if self.paying is not None else []
        parts += [*self.measures, *self.points.paths, *("\0".join(map(value_text, values)) for values in self.points)]
        return {"study": sha256("\n".join(parts).encode()).hexdigest()[:16], "points": len(self.points), "version": __version__}

    def table(self, outcomes: Mapping[int, Outcome]) -> Sweep:
        """Return the rows in the order of the points."""
        machine, workload = (title(file.tree.text("name") or "", file.tree, file.kind) for file in (self.machine, self.workload))
        rows = [outcomes[number].at(values) for number, values in enumerate(self.points) if number in outcomes]
        return Sweep(
            machine=machine,
            workload=workload,
            settings=tuple((path, value_text(value)) for path, value in self.settings.items()),
            vary=tuple(zip(self.points.paths, self.points.values, strict=True)),
            points=len(self.points),
            by=self.measures[0] if self.measures else "",
            rows=tuple(known_alike(self.points.paths, rows)),
        )


def _kept(journal: Journal, points: int) -> dict[int, Outcome]:
    """Return the outcomes in a journal.

    Raises:
        SpecError: a row was changed after it was written.
    """
    outcomes: dict[int, Outcome] = {}
    for number, row in journal.done.items():
        try:
            outcomes |= {number: Outcome.of(row)} if 0 <= number < points else {}
        except ValueError as error:
            message = f"the row of point {number} is damaged: {error}"
            raise SpecError.of(Place(str(journal.path), 0, 0), message, "remove the line: the point is run again") from None
    return outcomes


def run(
    study: Study,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    journal: str | Path | None = None,
) -> Sweep:
    """Run the points that have not been run yet.

    Args:
        study: study to run.
        workers: number of processes; see `hwsim.studies.pool.run_all`.
        executor: executor that runs the points instead.
        progress: called with the numbers of finished points and all points.
        journal: journal file; if it exists, the study resumes from it.

    Raises:
        SpecError: the journal belongs to another study.
        Interrupted: Ctrl-C, or the journal cannot be written; contains the finished points.
    """
    outcomes: dict[int, Outcome] = {}
    with ExitStack() as opened:
        kept = opened.enter_context(Journal(journal, study.head())) if journal is not None else None
        try:
            if kept is not None:
                outcomes |= _kept(kept, len(study.points))
            waiting = {number: values for number, values in enumerate(study.points) if number not in outcomes}
            if progress is not None and outcomes:
                progress(len(outcomes), len(study.points))
            with closing(run_all(study, waiting, workers=workers, executor=executor)) as finished:
                for number, outcome in finished:
                    outcomes[number] = outcome
                    if kept is not None and not outcome.lost:
                        kept.add(number, outcome.as_dict())
                    if progress is not None:
                        progress(len(outcomes), len(study.points))
        except KeyboardInterrupt as interrupt:
            raise Interrupted(study.table(outcomes), None, *interrupt.args[:1]) from None
        except OSError as error:
            if kept is None or error.filename != str(kept.path):
                raise
            raise Interrupted(study.table(outcomes), error) from error
    return study.table(outcomes)
