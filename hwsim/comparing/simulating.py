"""Two runs of files compared: both are simulated, then what lies between them, for the share of each change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from hwsim.api import Run, Source, simulated
from hwsim.comparing.alike import as_its_class
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
from hwsim.spec.shelf import sharing
from hwsim.studies.measures import TIME, Measure, NoSuchNumber
from hwsim.workload import sources


@sharing
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
        machines, workloads: those files for A and for B: paths, names of the library, or what files would say.
        set: what to change in both; set_a, set_b: in one of them.
        by: the number that is compared, as in a sweep; default: time, or work a second where they do different amounts.
        attribute: find what each change of the files contributes, by further runs.
        exact: number of changes up to which all sets of them are run; orders: orders that are drawn beyond.
        interval: "runs": find the ends of the intervals with more runs, of a service too.
        paying: prices, a way to pay and a site, for `energy`, `carbon` and `cost` (`hwsim.Paying`).
        progress: called with the further runs done and to do.

    Raises:
        SpecError: a mistake in the files, or no such number.

    >>> found = compare(("d2l-laptop", "d2l-laptop"), ("d2l/async-loop", "d2l/async-loop"), set={"n": 100},
    ...                 set_a={"blocking": True}, set_b={"blocking": False})
    >>> found.values, [(each.change.name, each.share) for each in found.steps.steps]
    ((0.005, 0.00302), [('blocking', -1980000000000)])
    """
    files = _files(machines, workloads, _own_settings(set, set_a, set_b))
    runs = [run_files(file, interval=interval, paying=paying) for file in files]
    settings = [tuple((path, str(value)) for path, value in own.items()) for own in _own_settings(set, set_a, set_b)]
    sides = [replace(of_run(run, run.to_json), settings=each) for run, each in zip(runs, settings, strict=True)]

    def alike(compared: Measure, values: Values) -> float | None:
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
    pairs = [sources.with_settings(*each) for each in zip(machines, workloads, settings, strict=True)]
    (machine_a, workload_a), (machine_b, workload_b) = pairs
    both = comparable(machine_a, machine_b, "machine"), comparable(workload_a, workload_b, "workload")
    first, second = (Files(*trees) for trees in zip(*both, strict=True))
    return first, second


def run_files(files: Files, *, interval: bool | Literal["runs"], paying: Paying | None = None) -> Run:
    """Simulate both files, even if the run does not fit its memory."""
    return simulated(files.machine, files.workload, interval=interval, paying=paying)


def _whole(run: Run, compared: Measure, unit: float) -> int:
    if compared.column == TIME:
        return run.simulated.makespan_fs
    try:
        return round(value_of(of_run(run, run.to_json), compared) / unit)
    except NoSuchNumber as error:
        raise CannotMix from error


def _priced(compared: Measure, values: Values, files: tuple[Files, Files], runs: Sequence[Run]) -> tuple[Files, Files]:
    """The files with the price of each; a machine with parts of both has none: the price is a change of its own."""
    if compared.column != "cost_usd":
        return files
    return files[0]._replace(price=values[0] / runs[0].makespan_s), files[1]._replace(price=values[1] / runs[1].makespan_s)


def _known_alike(compared: Measure, files: tuple[Files, Files], paying: Paying | None) -> float | None:
    """How much better B is if both machines are known alike; None where that cannot be found."""
    try:
        runs = [run_files(file._replace(machine=as_its_class(file.machine)), interval=False, paying=paying) for file in files]
        values = [
            each.price * run.makespan_s if each.price else value_of(of_run(run, run.to_json), compared)
            for each, run in zip(files, runs, strict=True)
        ]
    except (SpecError, Deadlock, CannotCompute, NoSuchNumber):
        return None
    if min(values) <= 0:
        return None
    return values[1] / values[0] if compared.most else values[0] / values[1]


def _over_ends(both: Comparison, first: Run, second: Run) -> Ratio | None:
    """The ratio of a number of two services, from runs at the ends of the intervals of their kernels."""
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
