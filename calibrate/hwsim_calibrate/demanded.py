"""The calls that one workload makes, each to be timed alone at exactly its shape: nothing predicts better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cache
from typing import Any, Final

from hwsim.demand import Cost
from hwsim.devices import Accesses, Cpu, Gpu, LibraryCall, Sockets, Work
from hwsim.devices.roofline import CannotCompute, LocalMemory
from hwsim.machine import Machine, build
from hwsim.ops import OPS, CannotPlace, Scope
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Tree, Value, decode, find, read, substitute, tree_of
from hwsim.workload import Workload, check_statements, read_workload
from hwsim_calibrate.calls import measured_as
from hwsim_calibrate.case import CannotMeasure, Case
from hwsim_calibrate.kernels import kernel_case
from hwsim_calibrate.snippet_calls import call_of_params, snippet_case, snippet_of

SUITE: Final = "workload"
AROUND: Final = 2.0  # times as many steps, or as few, as a call of the workload has
_ANYONE: Final[dict[str, Value]] = {"self": "self", "rank": 0, "ranks": 1}  # stands for every program of an `each`
_INSIDE: Final = ("repeat", "call")
_CALLED: Final = ("access", "compute", "elementwise", "matmul", "random", "reduce")


def cases_for(source: str) -> tuple[tuple[Case, ...], dict[str, str]]:
    """A case for each different call of a workload's ops on a CPU; the ops that have none, and why.

    Raises:
        SpecError: the mistakes of the workload.
    """
    mistakes = Mistakes()
    workload = read_workload(read(source if source == "-" else find("workload", source)), mistakes)
    mistakes.raise_if_any()
    if workload is None:
        return (), {}
    check_statements(workload, mistakes)
    mistakes.raise_if_any()
    cases: dict[tuple[str, str], Case] = {}
    left: dict[str, str] = {}
    for kind, inner in _ops(workload):
        name = inner.text("name") or kind
        try:
            case = _case(kind, inner)
        except (CannotMeasure, CannotPlace, CannotCompute) as error:
            left.setdefault(name, str(error))
        else:
            cases.setdefault(case.key, case)
    if workload.train is not None:
        left["train"] = "its ops come from a model, not from a library: there is no call to time"
    return tuple(cases.values()), left


def _case(kind: str, inner: Tree) -> Case:
    device = inner.text("device") or ""
    if device.startswith("gpu"):
        raise CannotMeasure(f"it runs on '{device}': the suite gpu measures those")
    call = call_of_op(kind, inner)
    if call is not None and (snippet := snippet_of(call)) is not None:
        return _like(call, snippet_case(*snippet, suite=SUITE))
    if call is None or (kernel := measured_as(call)) is None:
        raise CannotMeasure("it names no function of a library")
    return kernel_case(*kernel, suite=SUITE)


def call_of_op(kind: str, inner: Tree) -> LibraryCall | None:
    """The call that an op on a CPU makes; None if it names no function of a library.

    Raises:
        CannotMeasure: ops of its kind make none.
    """
    mistakes = Mistakes()
    op: Any = decode(substitute(inner, _ANYONE, mistakes, keep=()), OPS[kind], mistakes)
    mistakes.raise_if_any()
    if kind not in _CALLED:
        raise CannotMeasure(f"{kind} is no single call of a library")
    heard: list[LibraryCall] = []
    op.lower(_Hearing(_machine(), host="cpu", heard=heard))
    return heard[0] if heard else None


def _like(call: LibraryCall, case: Case) -> Case:
    """The case, if it makes such a call.

    Raises:
        CannotMeasure: it is another.
    """
    made = call_of_params(case.params)
    same = (made.function, made.form, made.dtype) == (call.function, call.form, call.dtype)
    if not same or not 1 / AROUND <= made.count / max(call.count, 1.0) <= AROUND:
        raise CannotMeasure(f"no case makes {call.function} {call.form}".rstrip() + f" of {call.dtype} with its steps")
    return case


@dataclass(frozen=True, slots=True)
class _Listener(Cpu):
    """A CPU that records the calls it is asked for."""

    heard: list[LibraryCall] = field(default_factory=list)

    def compute(self, name: str, work: Work) -> Cost:
        return self._keep(name, work.call)

    def access(self, name: str, accesses: Accesses) -> Cost:
        return self._keep(name, accesses.call)

    def _keep(self, name: str, call: LibraryCall | None) -> Cost:
        self.heard.extend([call] if call else [])
        return self.busy(name, 1.0)


@dataclass(frozen=True, slots=True)
class _Hearing(Scope):
    """A place where every device is that CPU."""

    heard: list[LibraryCall] = field(default_factory=list)

    def one(self, name: str) -> str:  # noqa: ARG002 (whatever it is called)
        return "cpu"

    def computing(self, name: str) -> tuple[str, Cpu | Sockets | Gpu]:  # noqa: ARG002
        return "cpu", _Listener(cores=1024, memory=LocalMemory(bandwidth=1e9), flop={"fp64": 1e9}, heard=self.heard)


@cache
def _machine() -> Machine:
    content: Mapping[str, Any] = {
        "hwsim": "machine/1",
        "class": "ideal",
        "parts": {"cpu": {"kind": "cpu", "cores": 1, "flop": {"fp64": "1 GFLOP/s"}, "memory": {"bandwidth": "1 GB/s"}}},
    }
    mistakes = Mistakes()
    built = build(tree_of(content), mistakes)
    mistakes.raise_if_any()
    if built is None:
        raise CannotMeasure("no machine to ask")
    return built


def _ops(workload: Workload) -> Iterator[tuple[str, Tree]]:
    """Every op of every program, nested ones too."""
    trees = [*(workload.programs or {}).values(), *([workload.program] if workload.program is not None else [])]
    for job in (workload.jobs or {}).values():
        trees += [*(job.programs or {}).values(), *([job.program] if job.program is not None else [])]
    for tree in trees:
        yield from _inside(tree)
    pipeline = workload.pipeline.get("stages") if workload.pipeline is not None else None
    if pipeline is not None:
        yield from _inside(pipeline)


def _inside(tree: Tree) -> Iterator[tuple[str, Tree]]:
    if tree.is_list:
        for element in tree.elements():
            yield from _inside(element)
        return
    for kind, inner in tree.value.items() if isinstance(tree.value, dict) else ():
        if kind in OPS:
            yield kind, inner
        elif kind in _INSIDE or kind == "do":
            yield from _inside(inner)
