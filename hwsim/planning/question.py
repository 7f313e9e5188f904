"""The format `plan/1`: a question in a file or in command-line options.

hwsim: plan/1
machine: cluster.yaml
workload: llama3-70b
vary: {let.nodes: 16..640, workload.train.parallel: auto}
require: [training at most 60 day, memory at most 90 %]
minimise: cost
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from hwsim.costs.site import SiteKeys
from hwsim.devices.offers import PaymentOption
from hwsim.planning.axes import PlanAxes, read_axes
from hwsim.planning.requirements import Objective, PlanQuantity, Requirement, contradictions, quantity_of, requirement_of
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, SpecError, Tree, check_header, decode, field, find, place_field, read, resolve, tree_of
from hwsim.spec.schema import json_schema
from hwsim.units import YEAR, BytesPerSecond, Ratio, Seconds

FORMAT: Final = "plan/1"
DEFAULT_SIMULATIONS: Final = 20  # default of `simulate`
DEADLINE_SLACK: Final = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanKeys:
    """A question: search space, requirements and objective."""

    hwsim: str = field("format of the file: plan/1", default=FORMAT)
    name: str = field("title of the answer (default: names of the workloads and machines)", default="")
    notes: str = field("free text", default="", record="for readers")
    machine: tuple[str, ...] = field("machines to choose from: library names, files, or a pattern such as *.yaml",
                                     one_or_many=True, example="cluster.yaml")  # fmt: skip
    workload: Tree = field("workload, or several workloads by name, each simulated on the whole machine",
                           example="{imagenet: imagenet-epoch, tune: tune.yaml}")  # fmt: skip
    settings: Mapping[str, Tree] = field("values that apply to every option, by path", key="set", default_factory=dict)
    vary: Tree | None = field(
        "values to choose from, by path: a list; a range (without a step, the planner selects values); `auto` for "
        "`train.parallel` and `infer`; {tokens, within} for `train.global_batch`, a batch and its relative tolerance",
        default=None,
        example="{let.nodes: 16..640, workload.train.parallel: auto}",
    )
    require: tuple[str, ...] = field("requirements of a feasible option: NAME at most VALUE, or NAME at least VALUE", default=(),
                                     one_or_many=True, example="training p90 at most 60 day")  # fmt: skip
    minimise: Tree | None = field(
        "objective to minimise; with a list, the next measure decides between equal options; with a mapping, weights by measure",
        default=None, example="cost",
    )  # fmt: skip
    maximise: Tree | None = field("objective to maximise, in the same forms as `minimise`", default=None, example="tokens_per_s")
    also: tuple[str, ...] = field("further measures of the Pareto frontier", default=(), one_or_many=True,
                                  example="[energy, nodes]")  # fmt: skip
    prices: str | None = field("price list that precedes the library's lists (default: only those of the library)", default=None,
                               example="prices.yaml")  # fmt: skip
    provider: str = field("only provider whose prices are used (default: all providers)", default="", example="OCI")
    failures: str | None = field("failure rates of trainings: a file, a library name, or `none` (default: the library's rates)",
                                 default=None, example="none")  # fmt: skip
    storage: BytesPerSecond | None = field(
        "write bandwidth of checkpoints (default: from the workload's `checkpoint`, else of the machine's only file system, "
        "else 2 TB/s per 16,384 GPUs)", default=None,
        exclusive_minimum=0.0, example="200 GB/s",
    )  # fmt: skip
    site: Tree | None = field("site of the machines: PUE, carbon intensity, electricity and hosting", default=None,
                              example="{pue: 1.2, grid: 360 g/kWh}")  # fmt: skip
    rent: PaymentOption = field("payment that ranks the options; the answer lists the other payments", default="purchase")
    growth: Ratio = field("growth of the number of machines per year of the period", default=0.0, minimum=0.0, example="20 %")
    discount: Ratio = field("discount rate per year: costs are present values", default=0.0, minimum=0.0, example="8 %")
    residual: Ratio | None = field("value of machines after their lifetime (default: of `prices`)", default=None, maximum=1.0)
    period: Seconds | None = field("time of use if no workload has an end (default: 1 year if there is a service)", default=None,
                                   example="1 month")  # fmt: skip
    simulate: int = field(
        "maximum number of simulated options; 0: closed form only", default=DEFAULT_SIMULATIONS, minimum=0, maximum=10_000
    )
    slack: Ratio = field("assumed relative error of the closed form: options this close to the best are also simulated",
                         default=DEADLINE_SLACK, minimum=0.0, maximum=2.0)  # fmt: skip
    placement: Literal["ordered", "scattered"] = field(
        "order of ranks over the nodes: neighbouring ranks on neighbouring nodes, or nodes in random order", default="ordered"
    )
    strict_library: bool = field("true: reject parts that are not in the library, and changed properties of parts", default=False)
    compare: Mapping[str, str] = field("published figures to print with the answer: label and text", default_factory=dict)
    seed: int = field("seed of the random order of nodes", default=1, minimum=0)
    place: Place = place_field()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A parsed question.

    Args:
        keys: keys of the file.
        machines: machine files, with their names.
        workloads: workload files by name; a single workload has the name "".
        varied: search space.
        requirements: limits of a feasible option.
        objectives: objectives in order of priority.
        also: further measures of the Pareto frontier.
        folder: folder of relative paths.
    """

    keys: PlanKeys
    machines: tuple[tuple[str, Tree], ...]
    workloads: Mapping[str, Tree]
    varied: PlanAxes
    requirements: tuple[Requirement, ...]
    objectives: tuple[Objective, ...]
    also: tuple[PlanQuantity, ...]
    folder: Path

    @property
    def settings(self) -> dict[str, object]:
        """Settings of all options, by path."""
        return {path: tree.plain() for path, tree in self.keys.settings.items()}

    @property
    def asked(self) -> tuple[PlanQuantity, ...]:
        """Quantities of the objectives, the frontier and the requirements."""
        wanted = [quantity for objective in self.objectives for quantity, _ in objective.weights]
        return tuple(dict.fromkeys([*wanted, *self.also, *(requirement.quantity for requirement in self.requirements)]))

    @property
    def period(self) -> float:
        """Time of use if no workload has an end (seconds); 0 if it is not stated and there is no service."""
        if self.keys.period is not None:
            return self.keys.period
        return (
            YEAR if any(tree.get(key) is not None for tree in self.workloads.values() for key in ("infer", "services")) else 0.0
        )

    @property
    def needs_money(self) -> bool:
        """Whether a requested quantity is in USD."""
        return any(quantity.measure.unit == "USD" for quantity in self.asked)


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema of a question."""

    out = json_schema(PlanKeys, header=FORMAT)
    place = json_schema(SiteKeys)
    place.pop("$schema")
    named = {"type": "string"}
    measures = {
        "anyOf": [named, {"type": "array", "items": named}, {"type": "object", "additionalProperties": {"type": "number"}}]
    }
    written = {
        "workload": {"anyOf": [named, {"type": "object"}]},
        "vary": {"type": "object"},
        "minimise": measures,
        "maximise": measures,
        "site": {"anyOf": [named, place]},
    }
    for key, value in written.items():
        out["properties"][key] |= value
    return out


def read_question(source: str | Path | Mapping[str, Any] | Tree) -> Question:
    """Parse the question in a file, or its content.

    Raises:
        SpecError: all mistakes of the question.
    """
    mistakes = Mistakes()
    if isinstance(source, Tree):
        tree = source
    elif isinstance(source, Mapping):
        tree = tree_of({"hwsim": FORMAT, **source})
    elif isinstance(source, str) and ("\n" in source or source == "-"):
        tree = read(source)
    else:
        tree = read(Path(source))
    check_header(tree, FORMAT, mistakes)
    keys = decode(tree, PlanKeys, mistakes)
    mistakes.raise_if_any()
    if keys is None:
        raise SpecError.of(tree.place, "expected a plan, got another file")
    folder = tree.place.folder or Path()
    machines = _machines(keys, tree, folder, mistakes)
    workloads = _workloads(keys.workload, folder, mistakes)
    names = tuple(workloads) or ("",)
    varied = read_axes(keys.vary, names, mistakes)
    place = (tree.get("require") or tree).place
    places = [element.place for element in (tree.get("require") or tree_of([])).elements()]
    requirements = [
        requirement_of(text, names, mistakes, places[no] if no < len(places) else place) for no, text in enumerate(keys.require)
    ]
    wanted = tuple(requirement for requirement in requirements if requirement is not None)
    contradictions(wanted, mistakes)
    objectives = _objectives(keys, tree, names, mistakes) if varied.deployments is None else ()
    if varied.deployments is not None:
        _deployed(keys, tree, wanted, mistakes)
    also = [quantity_of(text, names, mistakes, tree.key_place("also")) for text in keys.also]
    for path in keys.settings:
        if any(axis.path == path for axis in varied.axes):
            mistakes.add(tree.key_place("set"), f"'{path}' is both set and varied", "remove one of them")
    _timed(objectives, wanted, tree, workloads, mistakes)
    if keys.growth and any(map(has_stated_length, workloads.values())):
        mistakes.add(tree.key_place("growth"), "`growth` applies to a period of use, but a training has an end", "remove it")
    mistakes.raise_if_any()
    return Question(
        keys=keys,
        machines=machines,
        workloads=workloads,
        varied=varied,
        requirements=wanted,
        objectives=objectives,
        also=tuple(objective for objective in also if objective is not None),
        folder=folder,
    )


def _machines(keys: PlanKeys, tree: Tree, folder: Path, mistakes: Mistakes) -> tuple[tuple[str, Tree], ...]:
    machines_by_name: dict[str, Tree] = {}
    place = tree.key_place("machine")
    for name in keys.machine:
        try:
            if "*" in name and "\n" not in name:
                matching = {path.stem: read(path) for path in sorted(folder.glob(name))}
                machines = {stem: machine for stem, machine in matching.items() if machine.text("hwsim") == "machine/1"}
                if not machines:
                    mistakes.add(place, f"no machine file matches '{name}'", 'a pattern such as "*.yaml" beside the plan')
                machines_by_name |= machines
            else:
                machines_by_name["" if "\n" in name else Path(name).stem if name.endswith((".yaml", ".yml")) else name] = (
                    read(name) if name == "-" or "\n" in name else read(find("machine", name, folder, place))
                )
        except SpecError as error:
            mistakes.extend(error.mistakes)
    return tuple(machines_by_name.items())


def _workloads(tree: Tree, folder: Path, mistakes: Mistakes) -> dict[str, Tree]:
    trees: dict[str, Tree] = {}
    if tree.is_mapping and tree.get("hwsim") is not None:
        return {"": tree}
    for name, entry in tree.items() if tree.is_mapping else (("", tree),):
        if entry.is_mapping:
            trees[name] = entry
            continue
        if not isinstance(entry.value, str):
            mistakes.add(entry.place, f"expected the name of a workload, got {entry.what()}", "a library name, or a file")
            continue
        try:
            trees[name] = read(entry.value) if "\n" in entry.value else read(find("workload", entry.value, folder, entry.place))
        except SpecError as error:
            mistakes.extend(error.mistakes)
    return trees


def _deployed(keys: PlanKeys, tree: Tree, wanted: Sequence[Requirement], mistakes: Mistakes) -> None:
    """Add the mistakes of a search of deployments, whose objective is the fewest GPUs and whose requirements are latencies."""
    for key in ("minimise", "maximise", "also"):
        if getattr(keys, key):
            message = f"`{key}` does not apply to a search of deployments: it finds the fewest GPUs, and the frontier"
            mistakes.add(tree.key_place(key), message, "remove it; require: tpot_p95 at most 20 ms")
    for limit in wanted:
        if not limit.quantity.measure.name.startswith(("ttft_", "tpot_", "latency_")) or limit.low > 0:
            message = f"a search of deployments cannot require {limit.quantity.title}"
            mistakes.add(limit.place, message, "ttft_p95 at most 500 ms, tpot_p95 at most 20 ms, latency_p95 at most 10 s")


def _timed(
    objectives: Sequence[Objective],
    required: Sequence[Requirement],
    tree: Tree,
    workloads: Mapping[str, Tree],
    mistakes: Mistakes,
) -> None:
    """Add a mistake for `time` if the run length follows from arrivals, or if the run is only a few training steps."""
    wanted = [quantity for objective in objectives for quantity, _ in objective.weights]
    measured = [(quantity, tree.key_place("minimise"), True) for quantity in wanted]
    measured += [(limit.quantity, limit.place or tree.key_place("require"), False) for limit in required]
    for quantity, place, is_wanted in measured:
        of = [workload for name, workload in workloads.items() if quantity.workload in ("", name)]
        if quantity.measure.name != "time":
            continue
        if is_wanted and any(map(_is_paced, of)):
            message = "`time` cannot rank services: a run lasts as long as its requests arrive"
            mistakes.add(place, message, "minimise: latency_p99, minimise: cost, maximise: requests_per_s")
        elif any(map(has_stated_length, of)):
            mistakes.add(place, "`time` cannot rank trainings: the run is a few steps", "use `training` or `step`")


def _is_paced(workload: Tree) -> bool:
    """Whether requests arrive during the run."""
    infer = workload.get("infer")
    arrivals = None if infer is None else infer.get("arrivals")
    return workload.get("services") is not None or (arrivals is not None and arrivals.is_mapping)


def train_of(workload: Tree, mistakes: Mistakes) -> Tree | None:
    """Return the `train:` of a workload with its parameters substituted; None if there is none."""
    return resolve(workload, mistakes, kind="workload").get("train")


def has_stated_length(workload: Tree) -> bool:
    """Whether a workload is a training with a stated amount of tokens or epochs."""
    train = train_of(workload, Mistakes())
    return train is not None and any(train.get(key) is not None for key in ("epochs", "tokens"))


def _objectives(keys: PlanKeys, tree: Tree, workloads: tuple[str, ...], mistakes: Mistakes) -> tuple[Objective, ...]:
    if keys.minimise is not None and keys.maximise is not None:
        mistakes.add(tree.key_place("maximise"), "expected `minimise` or `maximise`, got both", "make one a requirement")
        return ()
    given, most = (keys.maximise, True) if keys.maximise is not None else (keys.minimise, False)
    if given is None:
        mistakes.add(tree.place, "the question has no objective", "minimise: cost, minimise: time, maximise: tokens_per_s, ...")
        return ()
    if given.is_mapping:
        weights = list[tuple[PlanQuantity, float]]()
        for name, entry in given.items():
            quantity = quantity_of(name, workloads, mistakes, given.key_place(name))
            if isinstance(entry.value, bool) or not isinstance(entry.value, int | float) or entry.value <= 0:
                mistakes.add(entry.place, f"a weight must be a number above 0, got {entry.what()}")
            elif quantity is not None:
                weights.append((quantity, float(entry.value)))
        return (Objective(tuple(weights), most),) if weights else ()
    objectives = list[Objective]()
    for entry in given.elements():
        if not isinstance(entry.value, str):
            mistakes.add(entry.place, f"expected the name of a measure, got {entry.what()}")
        elif (quantity := quantity_of(entry.value, workloads, mistakes, entry.place)) is not None:
            if (name := quantity.measure.name) and quantity.measure.more and not most:
                mistakes.add(entry.place, f"cannot minimise {name}: more is better", f"maximise: {name}")
            objectives.append(Objective(((quantity, 1.0),), most))
    return tuple(objectives)
