"""Simulate and compare two runs, and simulate mixtures of their files for the share of each change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from hwsim.api import Run, Source, simulated
from hwsim.comparing.class_defaults import as_its_class
from hwsim.comparing.comparison import Comparison, Values, of_sides, value_of
from hwsim.comparing.parameters import Files, comparable
from hwsim.comparing.shapley import EXACT, ORDERS
from hwsim.comparing.sides import of_run
from hwsim.comparing.waterfall import CannotMix, Progress, quantum, waterfall
from hwsim.costs.bill import Paying
from hwsim.devices import CannotCompute
from hwsim.engine import Deadlock
from hwsim.results.ratio import Ratio, ratio
from hwsim.spec import SpecError
from hwsim.spec.memo import with_memo
from hwsim.studies.measures import TIME, NoSuchNumber, StudyMeasure
from hwsim.workload import sources


@with_memo
def compare(
    machines: tuple[Source, Source],
    workloads: tuple[Source, Source],
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the word of the command line)
    set_a: Mapping[str, object] | None = None,
    set_b: Mapping[str, object] | None = None,
    by: str = "",
    attribute: bool = True,
    exact: int = EXACT,
    orders: int = ORDERS,
    interval: bool | Literal["runs"] = True,
    paying: Paying | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Simulate two runs and compare them.

    Args:
        machines: machines of A and B: paths, names in the library, or contents of files.
        workloads: workloads of A and B, in the same forms.
        set: settings of both.
        set_a: settings of A.
        set_b: settings of B.
        by: measure, as in a sweep; default: time, or throughput if the runs do different amounts of work.
        attribute: whether to find the contribution of each change of the files, with further runs.
        exact: number of changes up to which all sets are run.
        orders: number of sampled orders for more changes.
        interval: "runs": find the ends of the intervals with further runs, also for services.
        paying: prices, way to pay and site, for `energy`, `carbon` and `cost` (`hwsim.Paying`).
        progress: function that is called with (further runs done, total).

    Raises:
        SpecError: a file has errors, or a run has no such measure.

    >>> found = compare(("d2l-laptop", "d2l-laptop"), ("d2l/async-loop", "d2l/async-loop"), set={"n": 100},
    ...                 set_a={"blocking": True}, set_b={"blocking": False})
    >>> found.values, [(each.change.name, each.share) for each in found.steps.steps]
    ((0.005, 0.00302), [('blocking', -1980000000000)])
    """
    files = _files(machines, workloads, _own_settings(set, set_a, set_b))
    runs = [run_files(file, interval=interval, paying=paying) for file in files]
    settings = [tuple((path, str(value)) for path, value in own.items()) for own in _own_settings(set, set_a, set_b)]
    sides = [replace(of_run(run, run.to_json), settings=own) for run, own in zip(runs, settings, strict=True)]

    def alike(compared: StudyMeasure, values: Values) -> float | None:
        return _known_alike(compared, _priced(compared, values, files, runs), paying)

    both = of_sides(sides[0], sides[1], by, alike)
    if interval == "runs" and all(run.of_kernels and run.told_ends for run in runs) and both.measure is not None:
        both = replace(both, over=_over_ends(both, runs[0], runs[1]))
    if not attribute or both.measure is None or both.values is None:
        return both
    compared, unit = both.measure, quantum(both.values, both.measure.unit)
    files, is_cost = _priced(compared, both.values, files, runs), compared.column == "cost_usd"

    def value(mixture: Files) -> int:
        for end, run in zip(files, runs, strict=True):
            if mixture is end:
                return _whole(run, compared, unit)
        try:
            run = run_files(mixture, interval=False, paying=paying)
            return round(mixture.price * run.makespan_s / unit) if is_cost else _whole(run, compared, unit)
        except (SpecError, Deadlock) as error:
            raise CannotMix from error

    return replace(both, steps=waterfall(*files, value, unit, exact=exact, orders=orders, progress=progress))


def _own_settings(*settings: Mapping[str, object] | None) -> tuple[dict[str, object], dict[str, object]]:
    common, first, second = (dict(setting or {}) for setting in settings)
    return {**common, **first}, {**common, **second}


def _files(
    machines: tuple[Source, Source], workloads: tuple[Source, Source], settings: Sequence[Mapping[str, object]]
) -> tuple[Files, Files]:
    pairs = [sources.with_settings(*side) for side in zip(machines, workloads, settings, strict=True)]
    (machine_a, workload_a), (machine_b, workload_b) = pairs
    both = comparable(machine_a, machine_b, "machine"), comparable(workload_a, workload_b, "workload")
    first, second = (Files(*trees) for trees in zip(*both, strict=True))
    return first, second


def run_files(files: Files, *, interval: bool | Literal["runs"], paying: Paying | None = None) -> Run:
    """Simulate both files, even if the run does not fit its memory."""
    return simulated(files.machine, files.workload, interval=interval, paying=paying)


def _whole(run: Run, compared: StudyMeasure, unit: float) -> int:
    if compared.column == TIME:
        return run.simulated.makespan_fs
    try:
        return round(value_of(of_run(run, run.to_json), compared) / unit)
    except NoSuchNumber as error:
        raise CannotMix from error


def _priced(compared: StudyMeasure, values: Values, files: tuple[Files, Files], runs: Sequence[Run]) -> tuple[Files, Files]:
    """Return the files with the price of each machine, which is a separate change, as mixed machines have no price."""
    if compared.column != "cost_usd":
        return files
    return files[0]._replace(price=values[0] / runs[0].makespan_s), files[1]._replace(price=values[1] / runs[1].makespan_s)


def _known_alike(compared: StudyMeasure, files: tuple[Files, Files], paying: Paying | None) -> float | None:
    """Return the ratio by which B is better with class defaults on both machines; None if unknown."""
    try:
        runs = [run_files(file._replace(machine=as_its_class(file.machine)), interval=False, paying=paying) for file in files]
        values = [
            file.price * run.makespan_s if file.price else value_of(of_run(run, run.to_json), compared)
            for file, run in zip(files, runs, strict=True)
        ]
    except (SpecError, Deadlock, CannotCompute, NoSuchNumber):
        return None
    if min(values) <= 0:
        return None
    return values[1] / values[0] if compared.most else values[0] / values[1]


def _over_ends(both: Comparison, first: Run, second: Run) -> Ratio | None:
    """Return the ratio of a measure of two services, with its interval from runs at the ends of the kernel intervals."""
    assert both.measure is not None
    assert both.values is not None
    halves = []
    for run, value in zip((first, second), both.values, strict=True):
        key = next(key for key, told in run.told.items() if told.of_kernels)
        try:
            ends = [
                value_of(of_run(replace(run, families={**run.told, key: end}), dict), both.measure) for end in run.told_ends[key]
            ]
        except NoSuchNumber:
            return None
        if min(*ends, value) <= 0:
            return None
        halves.append(abs(math.log(ends[1] / ends[0])) / 2)
    kernels = [run.interval if run.interval.value > 0 else run.interval.of(1.0) for run in (first, second)]
    apart, product = ratio(kernels[0], kernels[1]), 2 * kernels[0].half * kernels[1].half
    alike = (kernels[0].half ** 2 + kernels[1].half ** 2 - apart.half**2) / product if product > 0 else 0.0
    half = math.sqrt(max(0.0, halves[0] ** 2 + halves[1] ** 2 - 2 * alike * math.prod(halves)))
    value = both.values[1] / both.values[0] if both.measure.most else both.values[0] / both.values[1]
    return Ratio(value, half, apart.outside)
