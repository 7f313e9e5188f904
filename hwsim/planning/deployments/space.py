"""The deployments of a served model on a machine, and the workload of one replica of each.

    together: tp x pp x groups GPUs, experts over ep of them
    apart:    some prefill replicas and some decode replicas, each with its own tp, groups and ep

A deployment is one such unit; `replicas` of them share the load evenly. Sizes are powers of two, and a unit has at most the GPUs
of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import product
from typing import Final

from hwsim.families.serving.workload.parallel import SplitKeys
from hwsim.families.serving.workload.placement import parallel_mistake
from hwsim.models.architectures import Transformer
from hwsim.models.plan import powers_up_to
from hwsim.planning.option_simulation import replica_workload
from hwsim.records import dataclass
from hwsim.spec import Tree, tree_of

NOT_SEARCHED: Final = (
    "batch limit, speculation, router, KV tiers, format of the checkpoint: as in the workload, or listed under `vary`; sizes "
    "between powers of two; pp with a split; replicas of unequal size"
)
BUDGETS: Final = (512, 2048, 8192)  # tokens per iteration, besides the framework's
ONE_PLAN: Final = ("scale", "offload")  # keys that the server does not support with pipeline stages or a split
PLACED: Final = ("parallel", "device", "split")


@dataclass(frozen=True, slots=True)
class Shape:
    """The GPUs of a replica: tensor and pipeline parallelism, groups of data-parallel attention, expert parallelism."""

    tp: int = 1
    pp: int = 1
    groups: int = 1
    ep: int = 1

    @property
    def gpus(self) -> int:
        """GPUs of a replica."""
        return self.tp * self.pp * self.groups

    @property
    def keys(self) -> dict[str, int]:
        """The shape as keys of `parallel:`."""
        return {"tp": self.tp, "pp": self.pp, "groups": self.groups, "ep": self.ep}

    def __str__(self) -> str:
        sizes = [(name, size) for name, size in self.keys.items() if size > 1 or name == "tp"]
        return ", ".join(f"{name} {size}" for name, size in sizes)


@dataclass(frozen=True, slots=True)
class Deployment:
    """A unit that serves requests; replicas of it share the load.

    Args:
        shape: GPUs of the replica, or of each decode replica.
        prefill: GPUs of each prefill replica; None if prefill and decode are together.
        prefills, decodes: prefill and decode replicas in the unit.
        budget: tokens per iteration; None: as in the workload or framework.
        dtype: number format; "" as in the workload.
    """

    shape: Shape
    prefill: Shape | None = None
    prefills: int = 0
    decodes: int = 1
    budget: int | None = None
    dtype: str = ""

    @property
    def gpus(self) -> int:
        """GPUs of the unit."""
        return self.decodes * self.shape.gpus + (0 if self.prefill is None else self.prefills * self.prefill.gpus)

    @property
    def kin(self) -> tuple[object, ...]:
        """Key of deployments whose estimates have the same error."""
        return self.shape, self.prefill, self.dtype

    def __str__(self) -> str:
        text = str(self.shape)
        if self.prefill is not None:
            text = f"prefill {self.prefills} x ({self.prefill}), decode {self.decodes} x ({self.shape})"
        more = [f"budget {self.budget:,}"] if self.budget is not None else []
        return ", ".join([text, *more, *([self.dtype] if self.dtype else [])])

    def infer(self, infer: Tree, gpus: tuple[str, ...]) -> Tree:
        """Return an `infer:` with this deployment on the first of some GPUs."""
        tree = infer.without(*PLACED)
        if self.prefill is None:
            plan: dict[str, object] = {"parallel": {**self.shape.keys, "dp": 1}, "device": list(gpus[: self.gpus])}
        else:
            first = self.prefills * self.prefill.gpus
            prefill = {"device": list(gpus[:first]), "parallel": {**self.prefill.keys, "dp": self.prefills}}
            decode = {"device": list(gpus[first : self.gpus]), "parallel": {**self.shape.keys, "dp": self.decodes}}
            plan = {"split": {"prefill": prefill, "decode": decode}}
        if self.budget is not None:
            server = infer.get("server") or tree_of({}, infer.place)
            plan["server"] = server.put("budget", tree_of(self.budget, infer.place))
        if self.dtype:
            plan["dtype"] = self.dtype
        for key, value in plan.items():
            tree = tree.put(key, value if isinstance(value, Tree) else tree_of(value, infer.place))
        return tree


@dataclass(frozen=True, slots=True)
class DeploymentSpace:
    """The deployments of a model on a machine.

    Args:
        model: the model.
        gpus: GPUs of the machine.
        infer: the workload's `infer:`, with its parameters substituted.
        axes: axes to search; others as in the workload.
        named: values of the axes that the question lists.
        formats: number formats that the GPU has.
        chunked: the server splits prompts, so that its token budget matters.
    """

    model: Transformer
    gpus: int
    infer: Tree
    axes: frozenset[str]
    named: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)
    formats: tuple[str, ...] = ()
    chunked: bool = True

    def shapes(self) -> Iterator[tuple[Shape, bool]]:
        """Yield the shapes of a replica, and whether the model and the server support each."""
        sizes = [self._sizes(axis) for axis in ("tp", "pp", "groups", "ep")]
        for tp, pp, groups, ep in product(*sizes):
            if tp * pp * groups > self.gpus or ep > tp * groups:
                continue
            shape = Shape(tp, pp, groups, ep)
            blocked = pp > 1 and any(self.infer.get(key) is not None for key in (*ONE_PLAN, "adapters"))
            yield shape, not blocked and parallel_mistake(self.model, SplitKeys(tp, groups, ep, pp)) is None

    def all(self) -> Iterator[Deployment]:
        """Yield the legal deployments, those with the same kernels one after another."""
        shapes = [shape for shape, is_legal in self.shapes() if is_legal]
        for dtype, shape in product(self.dtypes, shapes):
            for budget in self.budgets:
                yield Deployment(shape, budget=budget, dtype=dtype)
        if not self.is_split:
            return
        flat = [shape for shape in shapes if shape.pp == 1]
        for dtype, prefill, decode in product(self.dtypes, flat, flat):
            for prefills in range(1, (self.gpus - decode.gpus) // prefill.gpus + 1):
                for decodes in range(1, (self.gpus - prefills * prefill.gpus) // decode.gpus + 1):
                    if _coprime(prefills, decodes):  # else two units of half the size
                        yield Deployment(decode, prefill, prefills, decodes, dtype=dtype)

    @property
    def is_split(self) -> bool:
        """Whether prefill and decode on separate GPUs are searched."""
        return "split" in self.axes and all(self.infer.get(key) is None for key in (*ONE_PLAN, "adapters", "speculate"))

    def _sizes(self, axis: str) -> tuple[int, ...]:
        if axis in self.named:
            return tuple(int(value) for value in self.named[axis])
        parallel = self.infer.get("parallel")
        written = None if parallel is None else parallel.get(axis)
        if axis not in self.axes:
            return (written.value if written is not None and isinstance(written.value, int) else 1,)
        sparse = any(kind.experts > 1 for kind in self.model.kinds)
        return tuple(powers_up_to(self.gpus)) if sparse or axis in ("tp", "pp") else (1,)

    @property
    def budgets(self) -> tuple[int | None, ...]:
        """Token budgets of an iteration; None: the budget of the workload or framework."""
        if "budget" in self.named:
            return tuple(int(value) for value in self.named["budget"])
        return (None, *BUDGETS) if "budget" in self.axes and self.chunked else (None,)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Number formats; "": the format of the workload."""
        if "dtype" in self.named:
            return tuple(str(value) for value in self.named["dtype"])
        is_free = "dtype" in self.axes and self.infer.get("dtype") is None and self.model.quantised is None
        return tuple(name for name in ("bf16", "fp16", "fp8") if name in self.formats)[:3] if is_free else ("",)


def unit_workload(workload: Tree, deployment: Deployment, gpus: tuple[str, ...], replicas: int, requests: int) -> Tree:
    """Return the workload of one of `replicas` units with its share of the load.

    Raises:
        Unbuilt: the arrivals cannot be divided.
    """
    share = replica_workload(workload, replicas)
    infer = share.get("infer")
    assert infer is not None
    return share.put("infer", deployment.infer(infer, gpus).put("requests", tree_of(requests, infer.place)))


def _coprime(first: int, second: int) -> bool:
    return not any(first % part == 0 and second % part == 0 for part in range(2, min(first, second) + 1))
