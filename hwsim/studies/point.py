"""One point of a study. It may run in another process, so input and result are small and can be pickled."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, field, fields, replace
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, Literal

from hwsim.api import OutOfMemory, Run, Source, simulate
from hwsim.engine import Deadlock
from hwsim.families_interface import family_reports
from hwsim.graph.files.typed import refuse_unfit
from hwsim.machine import Machine, build
from hwsim.records import dataclass
from hwsim.results.activities import bounds_of
from hwsim.results.bound import GIVEN
from hwsim.results.critical import families, limited_by
from hwsim.results.interval import Interval, IntervalPart
from hwsim.results.invariants import CONTRADICTS, DEFECT, BrokenInvariant
from hwsim.results.work import WorkAmount, work_of
from hwsim.spec import Mistakes, Place, SpecError, Tree, Warning, distinct_warnings, resolve
from hwsim.spec.memo import Shelf, memo_table, shared
from hwsim.studies.measures import TIME, NoSuchNumber, measure, measures, number
from hwsim.views.summary.capacities import resource_of
from hwsim.workload import sources

if TYPE_CHECKING:
    from hwsim.costs.bill import Paying

PRICE: Final = "price"  # key of a machine or part that does not affect time
MAX_LOG_RATIO: Final = 100.0  # largest logarithm of (end of an interval / value)
MAX_KEPT_RUNS: Final = 4  # maximum number of runs that a study keeps


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a point.

    Args:
        makespan_s: time of the run (seconds); None if it failed.
        bottleneck: bound of most of that time, or an op with a stated time; of a service, the resource that limits its rate.
        share: share of the bottleneck in the time; of a service, its utilization.
        error: reason of a failure, on one line.
        measures: further numbers of the run (see `hwsim.studies.measures`), including the requested one.
        warnings: warnings of the run, each with a code.
        work: amounts of work, most specific unit first.
        interval: interval of the time.
        lost: whether its process failed, so that another try may succeed.
        price_kind: kind of the largest price behind a requested cost (`hwsim.costs.machine_price.price_kind`).
    """

    makespan_s: float | None = None
    bottleneck: str = ""
    share: float | None = None
    error: str = ""
    measures: tuple[tuple[str, float], ...] = ()
    warnings: tuple[Warning, ...] = ()
    work: tuple[WorkAmount, ...] = ()
    interval: Interval | None = None
    lost: bool = False
    price_kind: str = ""

    def at(self, values: tuple[object, ...]) -> StudyRow:
        """The row of a point: the values of the varied paths in their order, and the result."""
        return StudyRow(values=values, **{part.name: getattr(self, part.name) for part in fields(Outcome)})

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON data, from which `Outcome.of` restores it exactly."""
        row = {part.name: getattr(self, part.name) for part in fields(Outcome) if part.name != "lost"}
        row["measures"] = dict(self.measures)
        row["warnings"] = [[warning.code, warning.text, _place(warning)] for warning in self.warnings]
        row["interval"] = None if self.interval is None else asdict(self.interval)
        return {key: value for key, value in row.items() if value not in (None, "", (), [], {})}

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Outcome:
        """Restore an outcome from `as_dict`; other keys are ignored.

        Raises:
            ValueError: the row is not an outcome.
        """
        try:
            values = {part.name: row[part.name] for part in fields(Outcome) if part.name in row}
            values["measures"] = tuple(row.get("measures", {}).items())
            values["work"] = tuple(WorkAmount(*amount) for amount in row.get("work", ()))
            values["warnings"] = tuple(
                Warning(code, text, Place(*place) if place else None) for code, text, place in row.get("warnings", ())
            )
            if "interval" in row:
                parts = tuple(IntervalPart(**part) for part in row["interval"]["parts"])
                values["interval"] = Interval(**{**row["interval"], "parts": parts})
            outcome = cls(**values)
            refuse_unfit(outcome)
            refuse_impossible(outcome)
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise ValueError(f"invalid outcome of a point: {error}") from error
        return outcome


def refuse_impossible(outcome: Outcome) -> None:
    """Raise ValueError for an impossible time, share or interval."""
    numbers = [number for number in (outcome.makespan_s, outcome.share) if number is not None]
    if not all(0 <= number < math.inf for number in numbers):
        raise ValueError("expected a finite, non-negative time and share")
    if outcome.interval is not None:
        refuse_wide(outcome.interval)


def refuse_wide(interval: Interval) -> None:
    """Raise ValueError for an impossible interval: wider than a factor of e^100, or without its value."""
    if not (0 <= interval.below < MAX_LOG_RATIO and 0 <= interval.above < MAX_LOG_RATIO):
        raise ValueError("expected an interval that contains its value, and is no wider than a factor of e^100")
    deviations = [interval.own, *(std for part in interval.parts for std in (part.shared, part.scatter, part.quantile))]
    if not all(0 <= deviation < MAX_LOG_RATIO for deviation in deviations):
        raise ValueError("expected finite, non-negative standard deviations")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRow(Outcome):
    """The result of a point, with the values of the varied paths in their order."""

    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a machine or workload file; compared after settings and used files are filled in.

    Args:
        digest: hash of the content; empty if a used file cannot be found.
        timed: hash of the content that can affect a run, without prices.
        tree: parsed file.
        resolved: parsed file with used files filled in.
    """

    kind: Literal["machine", "workload"]
    digest: str
    timed: str = field(compare=False, repr=False)
    tree: Tree = field(compare=False, repr=False)
    resolved: Tree | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, kind: Literal["machine", "workload"], tree: Tree) -> Content:
        mistakes = Mistakes()
        resolved = resolve(tree, mistakes, kind=kind)
        text = json.dumps(resolved.plain(), default=str)
        digest = "" if len(mistakes) else sha256(text.encode()).hexdigest()
        timed = digest
        if kind == "machine" and f'"{PRICE}":' in text:
            timed = sha256(json.dumps(_without_prices(resolved.plain()), default=str).encode()).hexdigest()
        return cls(kind, digest, timed, tree, resolved)

    def become(self, tree: Tree) -> Content:
        """Return the content of another tree; this content if the tree is the same."""
        return self if tree is self.tree else Content.of(self.kind, tree)


def read_source(kind: Literal["machine", "workload"], source: Source) -> Content:
    """Read a machine or workload, once for all points.

    Raises:
        SpecError: the file does not exist, or is not YAML.
    """
    mistakes = Mistakes()
    tree = sources.tree_from(kind, source, mistakes)
    if tree is None:
        raise SpecError(mistakes)
    return Content.of(kind, tree)


def with_path_values(
    machine: Content, workload: Content, settings: Mapping[str, object]
) -> tuple[Content, Content, tuple[Warning, ...]]:
    """Return machine and workload with the settings of a point, and the warnings of the settings.

    Raises:
        SpecError: the path of a setting does not exist.
    """
    warnings: list[Warning] = []
    machine_tree, workload_tree = sources.changed(machine.tree, workload.tree, settings, Mistakes(), warnings)
    return machine.become(machine_tree), workload.become(workload_tree), tuple(warnings)


def run_point(
    machine: Content,
    workload: Content,
    settings: Mapping[str, object],
    wanted: Sequence[str] = (),
    study: str = "",
    paying: Paying | None = None,
) -> Outcome:
    """Simulate one point; an error becomes its outcome.

    Args:
        machine: content of the machine file.
        workload: content of the workload file.
        settings: values by path.
        wanted: numbers that the outcome must have.
        study: name of a study whose points share unchanged parts; "": nothing is shared.
        paying: payment option.
    """
    with shared(_shelf_of(study, get_ident())) if study else nullcontext():
        return _run(machine, workload, settings, wanted, paying)


@lru_cache(maxsize=16)
def _shelf_of(study: str, thread: int) -> Shelf:  # noqa: ARG001 (a shelf for each)
    """Return the shelf of a study in a thread: two threads never change one."""
    return {}


def _run(
    machine: Content, workload: Content, settings: Mapping[str, object], wanted: Sequence[str], paying: Paying | None
) -> Outcome:
    warnings: tuple[Warning, ...] = ()
    try:
        machine, workload, warnings = with_path_values(machine, workload, settings)
        run = _ran(machine, workload, paying)
    except SpecError as error:
        return Outcome(error=_in_one_line(error), warnings=_small(warnings))
    except Deadlock as error:
        return Outcome(error=" ".join(str(error).split()), warnings=_small(warnings))
    except OutOfMemory as error:
        warnings = distinct_warnings(warnings, error.run.warnings)
        return Outcome(error=" ".join(str(error).split()), warnings=_small(warnings))
    except BrokenInvariant as error:
        return Outcome(error=f"{CONTRADICTS}: {error}; {DEFECT}", warnings=_small(warnings))
    except (OSError, MemoryError) as error:
        return Outcome(error=str(error) or "out of memory", warnings=_small(warnings), lost=True)
    except Exception as error:  # noqa: BLE001  (one point of thousands: the others are not lost with it)
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return Outcome(error=f"{CONTRADICTS}: {text}; {DEFECT}", warnings=_small(warnings))
    try:
        requested = _requested(run, wanted) if wanted else {}
    except NoSuchNumber as error:
        return Outcome(error=f"{error} ({error.hint})", warnings=_small(warnings))
    name, share = _bottleneck(run)
    numbers = tuple(pair for pair in {**dict(measures(run)), **requested}.items() if pair[0] != TIME)
    warnings = _small(distinct_warnings(warnings, run.warnings))
    return Outcome(
        run.makespan_s,
        name,
        share,
        "",
        numbers,
        warnings,
        work_of(run),
        None if run.of_kernels or run.only_requests else run.interval,
        price_kind=_price_kind(run) if "cost_usd" in requested else "",
    )


def _price_kind(run: Run) -> str:
    """Return the kind of the largest price behind the cost of a run."""
    from hwsim.costs.bill import bill_of
    from hwsim.costs.machine_price import price_kind

    return price_kind(cost.prices) if (cost := bill_of(run).cost) is not None else ""


def _bottleneck(run: Run) -> tuple[str, float | None]:
    """Return the bound of most of the critical path with its share; of a service without a path, its limiting resource."""
    if run.only_requests:
        for name, utilization, is_capacity in (limit for told in family_reports(run) for limit in told.load(run)):
            return resource_of(name) if is_capacity else name, utilization
    parts = bounds_of(run.simulated, run.devices)
    if not parts or not run.simulated.makespan_fs:
        return "", None
    share = parts[0].time_fs / run.simulated.makespan_fs
    name, time_fs, _ = families(limited_by(run.simulated))[0]
    is_one_op = parts[0].bound.term == GIVEN and time_fs == parts[0].time_fs
    return name if is_one_op else str(parts[0].bound), share


def _requested(run: Run, wanted: Sequence[str]) -> dict[str, float]:
    document = cache(run.to_json)
    return {column.column: number(run, column, document) for column in map(measure, wanted)}


def _ran(machine: Content, workload: Content, paying: Paying | None) -> Run:
    """Return the run of both files, from an earlier point of the study if only prices differ."""
    built = _built(machine) if machine.digest else None
    shared = memo_table("runs") if built is not None and workload.digest else None
    if shared is None or built is None:
        return simulate(machine.tree if built is None else built, workload.tree, expect=False, paying=paying)
    key = machine.timed, workload.digest
    before: Run | None = shared.get(key)
    if before is None:
        run = simulate(built, workload.tree, expect=False, paying=paying)
        while len(shared) >= MAX_KEPT_RUNS:
            del shared[next(iter(shared))]
        shared[key] = run
        return run
    run = replace(before, built=built, paying=paying)
    if "interval" in before.__dict__:
        run.__dict__["interval"] = before.interval
    return run


def _without_prices(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_prices(child) for key, child in value.items() if key != PRICE}
    return list(map(_without_prices, value)) if isinstance(value, list) else value


def _place(warning: Warning) -> list[Any] | None:
    return [warning.place.file, warning.place.line, warning.place.column] if warning.place else None


def _small(warnings: tuple[Warning, ...]) -> tuple[Warning, ...]:
    """Return the warnings without the text of their files, because each point sends them to the first process."""
    return tuple(
        replace(warning, place=replace(warning.place, source=None)) if warning.place else warning for warning in warnings
    )


@lru_cache(maxsize=2)
def _built(machine: Content) -> Machine:
    """Build a machine once per process, because most studies vary only one file."""
    mistakes = Mistakes()
    built = build(machine.tree, mistakes, machine.resolved)
    if built is None or len(mistakes):
        raise SpecError(mistakes)
    return built


def _in_one_line(error: SpecError) -> str:
    """Return all mistakes with hints and places on one line, without lines of files and without places in settings."""
    messages = []
    for mistake in error.mistakes:
        at = mistake.place if mistake.place and mistake.place.file and not mistake.place.file.startswith("--") else None
        hint = "; ".join(filter(None, [mistake.hint or "", f"at {replace(at, file=Path(at.file).name)}" if at else ""]))
        messages.append(mistake.message + (f" ({hint})" if hint else ""))
    return "; ".join(messages)
