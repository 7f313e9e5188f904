"""The machine and the load of a search for deployments: users in a closed loop, or an arrival rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

from hwsim.devices import Gpu
from hwsim.families.serving.workload.placement import decode_service
from hwsim.families.serving.workload.settings import server_of
from hwsim.machine import Machine, UnknownName
from hwsim.models.architectures import Transformer
from hwsim.models.framework import Framework
from hwsim.planning.axes import REPLICAS, PlanAxis
from hwsim.planning.deployments.space import DeploymentSpace
from hwsim.planning.question import Question
from hwsim.planning.variants import PlanPoint, Values, Variants
from hwsim.records import dataclass
from hwsim.spec import Mistakes, SpecError, Tree, resolve
from hwsim.studies.grid import value_text
from hwsim.workload.load.keys import distribution_of

NAMES: Final = {f"workload.infer.parallel.{axis}": axis for axis in ("tp", "pp", "groups", "ep")} | {
    "workload.infer.server.budget": "budget",
    "workload.infer.dtype": "dtype",
    REPLICAS: REPLICAS,
}  # paths of the axes of a deployment
ALONE: Final = ("hwsim", "name", "notes", "source", "ref", "let", "infer", "expect")  # keys of a workload that is searched
MOST: Final = 1 << 16  # replicas
WAVES: Final = 10  # requests per client, as in InferenceX
LEAST: Final = 100  # requests of a simulated replica
USUAL_MOST: Final = 2000
PACED: Final = 1000  # requests at an arrival rate
CLOCKED: Final = 1500  # iterations of a simulation on the engine's clock, which is slow
FEWEST_WAVES: Final = 3


@dataclass(frozen=True, slots=True)
class DeploymentSite:
    """A machine, and a workload without its deployment.

    Args:
        point: values of the other axes.
        machine: the machine.
        gpus: names of its GPUs.
        workload: the workload, with the values of the point.
        space: the deployments.
        clients: users of the whole service; 0 at an arrival rate.
        per_s: arrival rate of the whole service (requests/s); 0 with users.
        think_s: think time of a user (s).
        output: mean output tokens.
        counts: replica counts that the question lists; () for all.
    """

    point: PlanPoint
    machine: Machine
    gpus: tuple[str, ...]
    workload: Tree
    space: DeploymentSpace
    clients: int
    per_s: float
    think_s: float
    output: float
    counts: tuple[int, ...] = ()

    @property
    def replica_counts(self) -> tuple[int, ...]:
        """Replica counts of the frontier: those with 1, 2, 4, ... users each; () if they depend on the capacity of a replica."""
        if self.counts or not self.clients:
            return self.counts
        users = [1 << exponent for exponent in range(self.clients.bit_length())]
        return tuple(sorted({-(-self.clients // each) for each in (*users, self.clients)}))

    @property
    def most(self) -> int:
        """Largest number of replicas."""
        return max(self.counts) if self.counts else self.clients or MOST

    def users_of(self, replicas: int) -> int:
        """Return the users of the busiest of some replicas; 0 at an arrival rate."""
        return -(-self.clients // replicas)

    def requests_of(self, replicas: int, *, is_clocked: bool) -> int:
        """Return the number of requests to simulate on a replica."""
        users = self.users_of(replicas)
        if not users:
            return min(PACED, max(LEAST, round(CLOCKED / self.output))) if is_clocked else PACED
        count = max(LEAST, min(WAVES * users, max(USUAL_MOST, FEWEST_WAVES * users)))
        return min(count, max(FEWEST_WAVES * users, round(CLOCKED * users / self.output))) if is_clocked else count


def sites_of(question: Question) -> tuple[DeploymentSite, ...]:
    """Return the sites of a question: one for each machine and combination of other values.

    Raises:
        SpecError: a workload, a machine or the load cannot be searched.
        Unbuilt: a machine cannot be built.
    """
    outer = [axis for axis in question.varied.axes if axis.path not in NAMES]
    named = {NAMES[axis.path]: axis for axis in question.varied.axes if axis.path in NAMES}
    variants, points = Variants(question), list[PlanPoint]()
    for machine in [name for name, _ in question.machines] if len(question.machines) > 1 else [""]:
        for values in product(*(axis.values for axis in outer)):
            chosen: Values = tuple((axis.path, value) for axis, value in zip(outer, values, strict=True))
            points.append(PlanPoint(len(points), machine, chosen))
    sites = tuple(_site(question, variants, point, named) for point in points)
    for axis in outer:
        _check_effect(axis, variants, sites)
    return sites


def _site(question: Question, variants: Variants, point: PlanPoint, named: Mapping[str, PlanAxis]) -> DeploymentSite:
    mistakes, machine = Mistakes(), variants.of_point(point)
    (written,) = variants.trees(point)[1].values()
    infer, gpus = resolve(written, mistakes, kind="workload").get("infer"), tuple(machine.devices_of("gpu"))
    mistakes.raise_if_any()
    axes = question.varied.deployments or frozenset()
    if infer is None or written.get("infer") is None or not gpus:
        missing = "a machine with GPUs" if infer is not None else "a workload with `infer`"
        raise SpecError.of(written.place, f"a search of deployments needs {missing}", "hwsim plan dgx-h100 serving/chat")
    for name in [name for name in written.plain() if name not in ALONE]:
        raise SpecError.of(written.key_place(name), f"a search of deployments compares steady states, without `{name}`")
    if infer.get("split") is not None and "split" not in axes:
        raise SpecError.of(infer.key_place("split"), "the search replaces `split`, which is not among its axes", "remove it")
    read = decode_service(infer.without("parallel", "split"), mistakes)
    mistakes.raise_if_any()
    assert read is not None
    keys, model, software = read
    try:
        gpus = gpus if infer.get("device") is None else machine.select(keys.device)
    except UnknownName as error:
        raise SpecError.of(infer.place, error.message, error.hint) from error
    if any(machine.device(name).model != machine.device(gpus[0]).model for name in gpus):
        raise SpecError.of(written.place, f"a search of deployments needs equal GPUs, but those of {machine.name} differ")
    gpu, arrivals = machine.device(gpus[0]).model, keys.arrivals
    if not isinstance(model, Transformer) or not model.causal or not isinstance(software, Framework) or keys.batching == "static":
        raise SpecError.of(infer.place, "a search of deployments needs a model that writes tokens, and continuous batching")
    if keys.sessions is not None or keys.scale is not None:
        raise SpecError.of(infer.place, "a search of deployments needs requests at a steady load, without `sessions` and `scale`")
    if not isinstance(gpu, Gpu):
        raise SpecError.of(infer.place, f"{gpus[0]} is no GPU: a search of deployments needs GPUs", "device: gpu*")
    clients = per_s = None
    if not isinstance(arrivals, str):
        clients, per_s = arrivals.clients, arrivals.poisson or (1.0 / arrivals.every if arrivals.every else None)
    if clients is None and per_s is None:
        place = (infer.get("arrivals") or infer).place
        raise SpecError.of(place, "a search of deployments needs a steady load", "arrivals: {poisson: 4 1/s} or {clients: 64}")
    server = server_of(software.server, keys, gpu.memory.size, gpu.generation)
    values = {name: tuple(axis.values) for name, axis in named.items() if name != REPLICAS}
    counts = named[REPLICAS].first() if REPLICAS in named else ()
    return DeploymentSite(
        point=point,
        machine=machine,
        gpus=gpus,
        workload=written,
        space=DeploymentSpace(
            model=model,
            gpus=len(gpus),
            infer=infer,
            axes=axes,
            named=values,  # type: ignore[arg-type]
            formats=tuple(gpu.flop),
            chunked=bool(server.chunked),
        ),
        clients=clients or 0,
        per_s=0.0 if clients else per_s or 0.0,
        think_s=0.0 if isinstance(arrivals, str) else distribution_of(arrivals.think or 0.0).mean,
        output=distribution_of(keys.output).mean,
        counts=tuple(count for count in counts if isinstance(count, int)),
    )


def _check_effect(axis: PlanAxis, variants: Variants, sites: Sequence[DeploymentSite]) -> None:
    """Raise SpecError if an axis changes neither the machine nor the workload: a parameter of the replaced parallel plan."""
    seen = {(variants.key(site.point), value_text(str(site.space.infer.plain()))) for site in sites}
    if len(axis.values) > 1 and len(seen) < len(sites):
        hint = ", ".join(path for path in NAMES if path != REPLICAS)
        raise SpecError.of(axis.place, f"'{axis.path}' has no effect: the search replaces `parallel`", f"one of {hint}")
