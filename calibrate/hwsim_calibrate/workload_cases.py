"""Cases for one workload (`--for`): every library call of its ops is timed at exactly its shape."""

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
MAX_RATIO: Final = 2.0  # between the operations of a case and of the workload's call
_ANY_PROGRAM: Final[dict[str, Value]] = {"self": "self", "rank": 0, "ranks": 1}  # one program represents all of an `each`
_NESTED: Final = ("repeat", "call", "do")
_LIBRARY_OPS: Final = ("access", "compute", "elementwise", "matmul", "random", "reduce")


def cases_for(source: str) -> tuple[tuple[Case, ...], dict[str, str]]:
    """Return a case for each distinct call of a workload's CPU ops, and op -> why it has none.

    Raises:
        SpecError: The workload has mistakes.
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
        left["train"] = "its ops are generated from a model, so there are no library calls to time"
    return tuple(cases.values()), left


def _case(kind: str, inner: Tree) -> Case:
    device = inner.text("device") or ""
    if device.startswith("gpu"):
        raise CannotMeasure(f"it runs on '{device}', which the suite gpu measures")
    call = call_of_op(kind, inner)
    if call is not None and (snippet := snippet_of(call)) is not None:
        return _check_case(call, snippet_case(*snippet, suite=SUITE))
    if call is None or (kernel := measured_as(call)) is None:
        raise CannotMeasure("it names no library function")
    return kernel_case(*kernel, suite=SUITE)


def call_of_op(kind: str, inner: Tree) -> LibraryCall | None:
    """Return the library call of an op on a CPU, or None if the op names no library function.

    Raises:
        CannotMeasure: Ops of this kind are not library calls.
    """
    mistakes = Mistakes()
    op: Any = decode(substitute(inner, _ANY_PROGRAM, mistakes, keep=()), OPS[kind], mistakes)
    mistakes.raise_if_any()
    if kind not in _LIBRARY_OPS:
        raise CannotMeasure(f"{kind} is not a single library call")
    calls: list[LibraryCall] = []
    op.lower(_RecordingScope(_machine(), host="cpu", calls=calls))
    return calls[0] if calls else None


def _check_case(call: LibraryCall, case: Case) -> Case:
    """Return the case if it makes the call with a similar number of operations; else raise CannotMeasure."""
    made = call_of_params(case.params)
    same = (made.function, made.form, made.dtype) == (call.function, call.form, call.dtype)
    if not same or not 1 / MAX_RATIO <= made.count / max(call.count, 1.0) <= MAX_RATIO:
        raise CannotMeasure(f"no case times {call.function} {call.form}".rstrip() + f" in {call.dtype} at a similar size")
    return case


@dataclass(frozen=True, slots=True)
class _RecordingCpu(Cpu):
    """A CPU that records the calls whose cost is requested."""

    calls: list[LibraryCall] = field(default_factory=list)

    def compute(self, name: str, work: Work) -> Cost:
        return self._keep(name, work.call)

    def access(self, name: str, accesses: Accesses) -> Cost:
        return self._keep(name, accesses.call)

    def _keep(self, name: str, call: LibraryCall | None) -> Cost:
        self.calls.extend([call] if call else [])
        return self.busy(name, 1.0)


@dataclass(frozen=True, slots=True)
class _RecordingScope(Scope):
    """A scope in which every device is the recording CPU."""

    calls: list[LibraryCall] = field(default_factory=list)

    def one(self, name: str) -> str:  # noqa: ARG002 (any name)
        return "cpu"

    def computing(self, name: str) -> tuple[str, Cpu | Sockets | Gpu]:  # noqa: ARG002
        return "cpu", _RecordingCpu(cores=1024, memory=LocalMemory(bandwidth=1e9), flop={"fp64": 1e9}, calls=self.calls)


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
        raise CannotMeasure("the reference machine is invalid")
    return built


def _ops(workload: Workload) -> Iterator[tuple[str, Tree]]:
    """Yield every op of every program, including nested ops."""
    trees = [*(workload.programs or {}).values(), *([workload.program] if workload.program is not None else [])]
    for job in (workload.jobs or {}).values():
        trees += [*(job.programs or {}).values(), *([job.program] if job.program is not None else [])]
    for tree in trees:
        yield from _ops_of_tree(tree)
    pipeline = workload.pipeline.get("stages") if workload.pipeline is not None else None
    if pipeline is not None:
        yield from _ops_of_tree(pipeline)


def _ops_of_tree(tree: Tree) -> Iterator[tuple[str, Tree]]:
    if tree.is_list:
        for element in tree.elements():
            yield from _ops_of_tree(element)
        return
    for kind, inner in tree.value.items() if isinstance(tree.value, dict) else ():
        if kind in OPS:
            yield kind, inner
        elif kind in _NESTED:
            yield from _ops_of_tree(inner)
