"""Simulate options: each workload on the option's machine; simulated numbers replace those in closed form."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from hwsim.api import OutOfMemory, Run, simulate
from hwsim.comparing.sides import interval_of
from hwsim.costs.amount import Amount
from hwsim.costs.energy import energy_of, stretched
from hwsim.devices import CannotCompute
from hwsim.engine import Deadlock
from hwsim.families_interface import family_reports
from hwsim.machine import Machine
from hwsim.machine.contents import below
from hwsim.planning.load_windows import USUAL, PlayedLoad, played_load
from hwsim.planning.loads import PlannedLoad, load_amount, load_of, long_enough, overload_reason
from hwsim.planning.option_bill import with_bill
from hwsim.planning.options import PlanOption
from hwsim.planning.reasons import Reason
from hwsim.planning.requirement_checks import judge_requirements, with_unknown_reasons
from hwsim.planning.requirements import MEASURES
from hwsim.planning.screen import Screening
from hwsim.planning.variants import Unbuilt, on_one_line, put_values
from hwsim.results.expect import PartOfDay
from hwsim.results.work import WorkAmount, work_of
from hwsim.spec import Mistake, Mistakes, SpecError, Tree, resolve, tree_of
from hwsim.studies.measures import measures
from hwsim.units import RATE, TIME, Quantity, parse_as
from hwsim.views.interval.say import as_dict

# Powers of the time in the measures of a run, for corrections of the time.
POWERS: Final = {"time": 1, "step": 1, "mfu": -1, "tokens_per_s": -1, "samples_per_s": -1, "requests_per_s": -1}
RATES: Final = "requests_per_s", "tokens_per_s", "samples_per_s"
Row = Mapping[str, Any]  # what a journal keeps of a simulation: numbers by workload, or the reason why there are none


def simulate_option(
    option: PlanOption, screen: Screening, kept: Row | None = None, *, ends: bool = False, scattered: bool = False
) -> tuple[PlanOption, Row]:
    """Return the option with the numbers of its runs, and its row for the journal.

    Args:
        option: option to simulate.
        screen: closed forms of the question.
        kept: row of an earlier run, which is then not repeated.
        ends: whether services run long enough for the requested measures. Services without a measured interval run twice more,
            with kernel times at both ends of their interval.
        scattered: whether nodes are in random order, so that ring neighbours are below different leaf switches.
    """
    point = option.point
    row = kept if kept is not None else _row(option, screen, ends=ends, scattered=scattered)
    if "reason" in row:
        reason = Reason(*row["reason"])
        return replace(option, how="simulation", estimated=option.numbers, reasons=(*option.reasons, reason)), row
    _, facts = screen.exact(point)
    numbers = {**option.numbers, **screen.of_machine(facts, point)}
    loads = [PlannedLoad(**run.get("load", {})) for run in row["runs"].values()]
    full = tuple(found for load in loads if (found := overload_reason(load, point.replicas)) is not None)
    notes = tuple(dict.fromkeys(note for load in loads for note in (load.window, load.note) if note))
    result = replace(option, how="simulation", estimated=option.numbers, numbers=numbers, wholes={}, reasons=full, notes=notes)
    for name, run in row["runs"].items():
        result = _with_run(result, screen, name, run)
    watts = math.fsum(run["watts"] for run in row["runs"].values()) / max(1, len(row["runs"]))
    question = screen.question
    result = with_bill(question, screen.outlay, result, facts, watts or None)
    return with_unknown_reasons(question, judge_requirements(question, result)), row


def _with_run(option: PlanOption, screen: Screening, name: str, run: Row) -> PlanOption:
    """Return the option with the simulated numbers of one workload."""
    half = run["half"]
    numbers = {f"{name}.{key}" if name else key: value for key, value in _amounts(run).items()}
    many = option.point.replicas
    for key in RATES:
        key = f"{name}.{key}" if name else key
        if key in numbers and many > 1:
            numbers[key] = numbers[key] * many
    work = {**option.work, name: tuple(WorkAmount(*amount) for amount in run.get("work", ()))}
    known = run.get("interval")
    sure = {} if known is None else {name: interval_of(known, run["numbers"]["time"] / known.get("factor", 1.0))}
    option = replace(option, numbers={**option.numbers, **numbers}, work=work, intervals={**option.intervals, **sure})
    cluster, facts = screen.exact(option.point)
    training = screen.training(option.point, name)
    if training is None or cluster is None or not run.get("count"):
        return option
    return screen.with_whole(option, facts, name, training, cluster.gpu, run["count"], run["numbers"]["step"], half)


def _scattered(machine: Machine, tree: Tree, workloads: Mapping[str, Tree], seed: int) -> tuple[Tree, dict[str, Tree]]:
    """Return trainings on all GPUs with the nodes in random order; the GPUs of a node stay adjacent."""
    families: dict[str, dict[str, None]] = {}  # patterns of the GPUs of each node
    for gpu in map(machine.device, machine.devices_of("gpu")):
        families.setdefault(gpu.node, {})[below(gpu.node, f"{gpu.family}*")] = None
    nodes = list(families)
    random.Random(seed).shuffle(nodes)
    given = dict(workloads)
    for name, workload in workloads.items():
        train = workload.get("train")
        if train is not None and train.get("device") is None and len(nodes) > 1:
            devices = tree_of([pattern for node in nodes for pattern in families[node]], train.place)
            given[name] = workload.put("train", train.put("device", devices))
    return tree, given


def _amounts(run: Row) -> dict[str, Amount]:
    """Return the numbers of a run with intervals.

    Times and rates have the error of the run time; those of a service have the interval from its load. Memory has the error
    of the memory model. Shares of time have no error.
    """
    amounts = {}
    for key, value in run["numbers"].items():
        ends, others = PlannedLoad(**run.get("load", {})).ranges.get(key), [end[key] for end in run["ends"] if key in end]
        if ends is not None or others:
            amounts[key] = load_amount(value, ends, others)
        elif key == "memory":
            amounts[key] = Amount.within(value, run["memory"])
        elif key == "mfu" or (key in MEASURES and MEASURES[key].unit in ("s", "1/s")):
            amounts[key] = Amount.exact(value).wider(run["half"])
        else:
            amounts[key] = Amount.exact(value)
    return amounts


def _row(option: PlanOption, screen: Screening, *, ends: bool, scattered: bool) -> Row:
    """Simulate every workload of an option."""
    point = option.point
    try:
        tree, workloads = screen.variants.trees(point)
        machine = screen.variants.of_point(point)
        for path, value in option.settings.items():
            tree, workloads = put_values(
                tree, workloads, path, value if not isinstance(value, Mapping | list) else tree_of(value)
            )
        if scattered:
            tree, workloads = _scattered(machine, tree, workloads, screen.question.keys.seed)
        shares = {name: replica_workload(workload, point.replicas) for name, workload in workloads.items()}
        return {"runs": {name: _run(machine, workload, screen, ends=ends) for name, workload in shares.items()}}
    except Unbuilt as error:
        return {"reason": ["machine", str(error)]}
    except PartOfDay as error:
        hint = "more requests, a shorter cycle, or `start` before the peak"
        return {"reason": ["day", f"{error.mistakes[0].message} ({hint})"]}
    except SpecError as error:
        return {"reason": ["workload", on_one_line(error.mistakes)]}
    except OutOfMemory as error:
        needed = max((device.peak / device.size for device in error.run.memory if device.size), default=1.0)
        return {"reason": ["memory", " ".join(str(error).split()), needed, 1.0, max(0.0, needed - 1.0)]}
    except (CannotCompute, Deadlock) as error:
        return {"reason": ["run", " ".join(str(error).split())]}


def _run(machine: Machine, workload: Tree, screen: Screening, *, ends: bool) -> Row:
    def play(counts: Mapping[str, int], interval: bool | Literal["runs"] = not serves(workload)) -> Run:
        return simulate(machine, part_of_load(counts).workload, expect=False, interval=interval)

    def part_of_load(counts: Mapping[str, int]) -> PlayedLoad:
        changed = {"": workload}
        for path, count in counts.items():
            _, changed = put_values(workload, changed, path, count)
        return played_load(changed[""])

    wanted = {quantity.measure.name for quantity in screen.question.asked} if ends else set[str]()
    run, counts = long_enough(play, wanted, part_of_load({}).ramped)
    if part := [warning for warning in run.warnings if warning.code == "partial-cycle"]:
        raise PartOfDay([Mistake(part[0].place, part[0].text)])
    if beyond := [note.text for note in run.warnings if note.exceeds and note.code not in ("overloaded", "service-deadlock")]:
        raise Unbuilt(beyond[0])
    _, window, mean_per_s, _ = part_of_load(counts)
    load, work, numbers = load_of(run, lengthened=bool(counts))._replace(window=window), work_of(run), _numbers(run)
    arrivals_per_s = numbers.get("requests_per_s", work[0].per_s if work else 0.0)
    share = mean_per_s / arrivals_per_s if mean_per_s and arrivals_per_s and not load.grows else 1.0
    if ends and serves(workload) and not any(report.sure(run) for report in family_reports(run)):
        run = play(counts, "runs")
    energy = energy_of(run, screen.outlay.site)
    half, factor = stretched(run)
    return {
        "numbers": _at_mean_rate({name: value * factor ** POWERS.get(name, 0) for name, value in numbers.items()}, share),
        "work": [(unit, amount, per_s * share) for unit, amount, per_s in work],
        "interval": as_dict(run.interval) if run.sure and not run.server else None,
        "half": 0.0 if run.of_kernels else half,
        "ends": [_at_mean_rate(_known(end), share) for report in family_reports(run) for end in report.at_ends(run)],
        "load": load._asdict(),
        "count": run.simulated.flat.graph.trainings[0].count if run.simulated.flat.graph.trainings else 0.0,
        "memory": max((device.spread for device in run.memory if device.size), default=0.0),
        "watts": 0.0 if energy is None or run.makespan_s <= 0 else energy.joules.value / (factor * run.makespan_s),
    }


def serves(workload: Tree) -> bool:
    """Whether a workload is a service."""
    return workload.get("infer") is not None


def _numbers(run: Run) -> dict[str, float]:
    """Return the numbers of a run by measure, in SI units."""
    columns = {"time": run.makespan_s, **dict(measures(run))}
    numbers = {name.removesuffix("_s") if name in ("step_s", "ttft_p95_s", "tpot_p95_s") else name: value
               for name, value in columns.items()}  # fmt: skip
    numbers = {f"{unit}_per_s": per_s for unit, _, per_s in work_of(run) if unit in ("samples", "tokens")} | numbers
    for report in family_reports(run):
        numbers |= _known(report.numbers(run))
    shares = [device.peak / device.size for device in run.memory if device.size]
    if shares:
        numbers["memory"] = max(shares)
    if "busy" not in numbers:
        gpus = [usage for usage in run.usage if usage.kind == "compute" and run.devices.get(usage.device) == "gpu"]
        if gpus:
            many = sum(usage.identical_count for usage in gpus)  # integers
            numbers["busy"] = math.fsum(usage.utilization * usage.identical_count for usage in gpus) / many
    return numbers


def _at_mean_rate(numbers: Mapping[str, float], share: float) -> dict[str, float]:
    """Return numbers whose rates are multiplied by average rate / rate of the run."""
    return {name: value * share if name in RATES else value for name, value in numbers.items()}


def _known(numbers: Mapping[str, float]) -> dict[str, float]:
    """The measures that a question can request."""
    return {name: value for name, value in numbers.items() if name in MEASURES}


def replica_workload(workload: Tree, replicas: int) -> Tree:
    """Return the workload of one replica: its share of the requests.

    Raises:
        Unbuilt: the arrivals cannot be divided.
    """
    if replicas == 1:
        return workload
    mistakes = Mistakes()
    resolved = resolve(workload, mistakes, kind="workload")
    mistakes.raise_if_any()
    if (infer := workload.get("infer")) is not None:
        return workload.put("infer", _part_of(infer, resolved.get("infer") or infer, replicas))
    if (services := workload.get("services")) is None:
        return workload
    for name, service in services.items():
        if service.get("arrivals") is not None:
            services = services.put(
                name, _part_of(service, (resolved.get("services") or services).get(name) or service, replicas)
            )
    return workload.put("services", services)


def _part_of(service: Tree, resolved: Tree, replicas: int) -> Tree:
    """Return a service with the share of the requests of one replica."""
    arrivals = resolved.get("arrivals")
    for key, dimension, factor in (("poisson", RATE, 1.0 / replicas), ("every", TIME, float(replicas))):
        given = arrivals.get(key) if arrivals is not None else None
        if arrivals is not None and given is not None and isinstance(given.value, str | int | float | Quantity):
            value = parse_as(given.value, dimension) * factor
            unit = "1/s" if dimension is RATE else "s"
            return service.put("arrivals", tree_of({key: f"{value!r} {unit}"}, arrivals.place))
    day = arrivals.get("day") if arrivals is not None else None
    if arrivals is not None and day is not None:
        rates = {key: given.value for key in ("mean", "peak") if (given := day.get(key)) is not None}
        shares = {key: parse_as(rate, RATE) / replicas for key, rate in rates.items() if isinstance(rate, str | float | Quantity)}
        part = tree_of({**day.plain(), **{key: f"{rate!r} 1/s" for key, rate in shares.items()}}, arrivals.place)
        return service.put("arrivals", arrivals.put("day", part))
    if arrivals is not None and arrivals.get("trace") is not None:
        taken = arrivals.get("share")
        every = replicas * (taken.value if taken is not None and isinstance(taken.value, int) else 1)
        return service.put("arrivals", arrivals.put("share", tree_of(every, arrivals.place)))
    clients = arrivals.get("clients") if arrivals is not None else None
    if arrivals is not None and clients is not None and isinstance(clients.value, int):
        share = tree_of(-(-clients.value // replicas), arrivals.place)  # the busiest machine has the one more
        return service.put("arrivals", arrivals.put("clients", share))
    if arrivals is None or not arrivals.is_mapping:  # all at once
        count = resolved.get("requests")
        most = count.value if count is not None and isinstance(count.value, int) else USUAL
        return service.put("requests", tree_of(-(-most // replicas), service.place))
    ways = [key for key, _ in arrivals.items()]
    raise Unbuilt(f"requests of `{ways[0]}` cannot be split over replicas; use arrivals: {{poisson: 50 1/s}}")
