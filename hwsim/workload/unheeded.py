"""Keys that a workload gives and that change nothing on its machine, or next to its other keys: refused, or warned of.

Refused: what has no meaning on any machine (see `refuse_statement`, and the checks of pipelines and trainings).
Warned of: what another machine, or another value of another key, would give a meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

from hwsim.devices import CannotCompute, Cpu, Gpu, Memory, Sockets
from hwsim.devices.kernels import Kernels
from hwsim.doors import door
from hwsim.machine import Machine, UnknownName
from hwsim.ops import OPS, CannotPlace, ExchangeOp, Scope
from hwsim.ops.op import CalledOp
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Tree, Warning, decode, did_you_mean, plan, substitute
from hwsim.spec.shelf import MOST_BUILT, once
from hwsim.workload.file import Each, Runtime, Workload
from hwsim.workload.lower import programs_of
from hwsim.workload.programs import Program, find_programs

OF_A_CALL: Final = ("function", "form", "rows", "into", "among_others", "new_pages", "new_bytes", "since")
OF_COMPILED: Final = ("compile", "issue", "per_op", "starts", "fuse")
_USUAL: Final = ("elementwise", "random", "reduce")  # ops that are a call of some function where none is named
_OF_CORES: Final[Mapping[str, tuple[str, ...]]] = {
    "compute": ("remote", "threads"),
    "access": ("remote", "among_others", "into", "since"),
}


@dataclass(frozen=True, slots=True)
class Given:
    """An op as a file gives it, on its device.  keys: those that are not at their defaults.  program: the first that has it."""

    kind: str
    tree: Tree
    keys: frozenset[str]
    program: Program
    device: str
    model: Any

    @property
    def kernels(self) -> Kernels | None:
        """Measured functions of its device."""
        own = self.model.model if isinstance(self.model, Sockets) else self.model
        return own.kernels if isinstance(own, Cpu) else None


def unheeded(workload: Workload, machine: Machine, mistakes: Mistakes) -> tuple[Warning, ...]:
    """Warnings of keys without effect; what can have none on any machine is noted as a mistake."""
    warnings: list[Warning] = []
    calls: dict[tuple[str, str], list[Given]] = {}  # ops whose keys of a call say nothing, by device and reason
    for given in _ops(workload, machine):
        refuse_statement(given.kind, given.tree, mistakes)
        _refuse_unknown(given, mistakes)
        warnings += _of_op(given)
        if given.keys & set(OF_A_CALL) and (reason := _why_no_call(given)):
            calls.setdefault((given.device, reason), []).append(given)
    warnings += [_not_measured(device, reason, ops) for (device, reason), ops in calls.items()]
    warnings += _of_runtimes(workload)
    for key in workload.families:
        warnings += door(key).idle(workload, machine)
    return (
        *warnings,
        *_of_stalls(workload),
        *(_wider_formats(workload, machine) if workload.families else ()),
    )


def _wider_formats(workload: Workload, machine: Machine) -> Iterator[Warning]:
    from hwsim.workload.narrow import wider_formats  # of models

    return wider_formats(workload, machine)


def refuse_statement(kind: str, tree: Tree, mistakes: Mistakes) -> None:
    """Note keys of an op that mean nothing without another, on any machine."""
    if kind == "compute" and (tree.get("branches") is None) != (tree.get("mispredicted") is None):
        given, missing = ("branches", "mispredicted") if tree.get("mispredicted") is None else ("mispredicted", "branches")
        example = "mispredicted: 5 %" if missing == "mispredicted" else "branches: 1e8"
        mistakes.add(tree.key_place(given), f"`{given}` has no effect without `{missing}`", f"add `{example}`")


# ---- the ops of a workload ----


def _ops(workload: Workload, machine: Machine) -> Iterator[Given]:
    """Every op that gives more than its size, as the first program of each group places it."""
    named = [(name, tree) for name, tree, _ in programs_of(workload)]
    trees, names = tuple(tree for _, tree in named), tuple(name for name, _ in named)

    def given() -> list[Given]:
        return [each for name, tree in named for each in _of_program(name, tree, machine)]

    yield from once("given", (machine, *trees), given, also=names, most=MOST_BUILT)
    for key in workload.families:
        for tree in workload.trees(key):
            each, ops = door(key).ops(tree)
            yield from _of_statements(ops, _first("", tree, Each(tuple(each), ()) if each else None, machine)) if ops else ()


def _of_program(name: str, tree: Tree, machine: Machine) -> Iterator[Given]:
    ranks_of = Each(_names(tree.get("each")), ()) if tree.is_mapping and tree.get("each") is not None else None
    yield from _of_statements(_body(tree), _first(name, tree, ranks_of, machine))


def _first(name: str, tree: Tree, each: Each | None, machine: Machine) -> Program | None:
    return next(iter(find_programs(name, tree, each, machine, Mistakes(), 0 if each else None)), None)


def _of_statements(statements: list[Tree], program: Program | None) -> Iterator[Given]:
    for tree in statements if program is not None else ():
        for kind, inner in tree.items() if tree.is_mapping else ():
            if kind in ("repeat", "call"):
                yield from _of_statements(_body(inner), program)
            elif kind in OPS and inner.is_mapping and program is not None:
                keys = _given(OPS[kind], inner)
                device, model = _placed(inner, program) if keys else ("", None)
                if keys:
                    yield Given(kind, inner, keys, program, device, model)


def _given(cls: Any, tree: Tree) -> frozenset[str]:
    """Keys in question that a file gives, with another value than the default."""
    asked = {*OF_A_CALL, "branches", "mispredicted", "threads", "remote", "kernels", "chunks", "isa", "region", "depth"}
    found = {key: each for key, each in tree.items() if key in asked}
    defaults = {each.key: each.default for each in plan(cls)} if found else {}
    return frozenset(key for key, each in found.items() if each.value != defaults.get(key))


def _placed(tree: Tree, program: Program) -> tuple[str, Any]:
    """(device of an op, its model); None for what has no device, or none that is known."""
    names = program.values
    scope: Scope = program.scope
    for key in ("device", "from", "to"):
        named = tree.get(key)
        if named is not None:
            text = substitute(named, names, Mistakes(), keep=()).value
            try:
                device = scope.one(str(text))
                model = scope.machine.device(device).model
            except UnknownName:
                return "", None
            if key == "device" or getattr(model, "kind", "") == "disk":
                return device, model
    try:
        return scope.computing("")
    except (CannotPlace, UnknownName):
        return "", None


def _body(tree: Tree) -> list[Tree]:
    inside = tree.get("do") if tree.is_mapping else tree
    return [] if inside is None else list(inside.elements()) if inside.is_list else [inside]


def _names(tree: Tree | None) -> tuple[str, ...]:
    return () if tree is None else tuple(str(element.value) for element in (tree.elements() if tree.is_list else [tree]))


# ---- ops ----


def _refuse_unknown(given: Given, mistakes: Mistakes) -> None:
    named = given.tree.text("function")
    if not named:
        return
    from hwsim.devices.functions import FUNCTIONS

    if named in FUNCTIONS or _of_nothing(given.tree):
        return  # of no elements: a view, which nothing is computed for
    measured = [name.partition(" ")[0] for name in given.kernels.functions] if given.kernels else []
    if named not in measured:
        where = "numpy, nor of the `kernels` of " + given.device if measured else "numpy"
        hint = did_you_mean(named, [*measured, *FUNCTIONS]) or "leave it out, or add it to the `kernels` of the cpu"
        mistakes.add(given.tree.key_place("function"), f"'{named}' is no function of {where}", hint)


def _of_nothing(tree: Tree) -> bool:
    count = tree.get("count")
    return count is not None and count.value == 0


def _of_op(given: Given) -> Iterator[Warning]:
    """Keys that say nothing on this device, or next to the other keys."""
    kind, keys, tree = given.kind, given.keys, given.tree
    if issubclass(OPS[kind], ExchangeOp) and "chunks" in keys and tree.text("steps") != "explicit":
        yield no_effect(tree, ["chunks"], "the op is one for each phase, and cuts no sends", "`steps: explicit` does")
    if isinstance(given.model, Gpu | Memory):
        named = [key for key in _OF_CORES.get(kind, ()) if key in keys]
        if named:
            kind_of_part = "gpu" if isinstance(given.model, Gpu) else "memory"
            yield no_effect(tree, named, f"{given.device} is a {kind_of_part}", "only a cpu has it")
    elif "kernels" in keys and isinstance(given.model, Cpu | Sockets):
        yield no_effect(tree, ["kernels"], f"{given.device} is a cpu", "only a gpu starts kernels")
    if "isa" in keys and (kind == "random" or tree.text("mix") == "random"):
        yield no_effect(tree, ["isa"], "`random` of the cpu is a rate of its own", "`cores` counts")
    elif "isa" in keys and given.kernels is not None and not _why_no_call(given) and issubclass(OPS[kind], CalledOp):
        yield no_effect(tree, ["isa"], f"the call was measured on {given.device} as it is", "`kernels` has its time")
    if kind == "compute" and "threads" in keys and tree.get("instructions") is None:
        yield no_effect(tree, ["threads"], "they share instructions, and none are counted", "`instructions` counts them")
    if "remote" in keys and isinstance(given.model, Cpu | Sockets) and _as_if_near(given):
        yield no_effect(
            tree, ["remote"], "these cores are slower than the far memory", "more `cores`, or dependent accesses, feel it"
        )
    if given.model is not None and given.model.kind == "disk":
        idle = ["depth"] if "depth" in keys and tree.text("access") != "random" else []
        if "region" in keys and not (kind == "write" and given.model.size):  # writes over a region fill no more of the disk
            idle.append("region")
        if idle:
            yield no_effect(
                tree, idle, f"{given.device} is of kind disk, the same everywhere", "an ssd, hdd or filesystem knows them"
            )


def _as_if_near(given: Given) -> bool:
    """Whether an op asks for the same with all of its memory near."""
    op: Any = decode(substitute(given.tree, given.program.values, Mistakes(), keep=()), OPS[given.kind], Mistakes())
    try:
        costs = [each.lower(given.program.scope).cost for each in (op, replace(op, remote=0.0))] if op else []
    except (CannotCompute, CannotPlace, UnknownName):
        return False  # lowering says why
    return len(costs) == 2 and costs[0].demand == costs[1].demand


def _why_no_call(given: Given) -> str:
    """Why the keys of a call say nothing; "" if they are heeded."""
    if not issubclass(OPS[given.kind], CalledOp) and given.kind != "access":
        return ""
    if isinstance(given.model, Gpu):
        return "it is a gpu, whose library calls are not in its file"
    if given.model is None or isinstance(given.model, Memory):
        return ""
    if given.kernels is None:
        return "its library calls were not measured (no `kernels`)"
    if given.kind not in (*_USUAL, "matmul") and given.tree.get("function") is None:
        return f"a {given.kind} without a `function` is no call of a library"
    return ""


def _not_measured(device: str, reason: str, ops: list[Given]) -> Warning:
    """One warning for all such ops of a device, at the place of the first."""
    keys = [key for key in OF_A_CALL if any(key in each.keys for each in ops)]
    kinds = ", ".join(sorted({op.kind for op in ops}))
    many = f"{len(ops)} ops ({kinds})" if len(ops) > 1 else kinds
    has, plural = ("has", "") if len(keys) == 1 else ("have", "s")
    text = f"key{plural} {_listed(keys)} of {many} {has} no effect on {device}: {reason}; plain traffic is used"
    return Warning("not-measured", text, ops[0].tree.place)


def no_effect(tree: Tree, keys: Sequence[str], reason: str, instead: str) -> Warning:
    """The warning of keys that change nothing; instead: what would."""
    has = "has" if len(keys) == 1 else "have"
    return Warning("no-effect", f"{_listed(keys)} {has} no effect: {reason}; {instead}", tree.key_place(keys[0]))


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(f"`{key}`" for key in keys)


# ---- runtimes, events ----


def _of_runtimes(workload: Workload) -> Iterator[Warning]:
    """A runtime of no program, and what a runtime says of compiled bodies where there are none."""
    programs = list(programs_of(workload))
    runtimes = {id(runtime): runtime for _, _, runtime in programs if runtime is not None}
    if workload.runtime is not None and not programs:
        yield Warning("no-effect", "`runtime` has no effect: it is of programs, and there is none", workload.place)
    for runtime in runtimes.values():
        compiled = [key for key in OF_COMPILED if getattr(runtime, key) != _default_of(key)]
        calls = runtime.call is not None and any(_has_call(_body(tree)) for _, tree, its in programs if its is runtime)
        if runtime.call is None and compiled:
            text = f"{_listed(compiled)} of the runtime have no effect: without `call` it compiles nothing"
            yield Warning("no-effect", text, workload.place)
        elif runtime.call is not None and not calls:
            text = (
                f"{_listed(['call', *compiled])} of the runtime have no effect: no program has a `call`, so nothing is compiled"
            )
            yield Warning("no-effect", text, workload.place)


@cache
def _default_of(key: str) -> object:
    return next(each.default for each in plan(Runtime) if each.key == key)


def _has_call(statements: list[Tree]) -> bool:
    for tree in statements:
        for kind, inner in tree.items() if tree.is_mapping else ():
            if kind == "call" or (kind == "repeat" and _has_call(_body(inner))):
                return True
    return False


def _of_stalls(workload: Workload) -> Iterator[Warning]:
    """A part that is down in a run that writes checkpoints: what a crash would lose is not lost."""
    down = next((event for event in workload.events if event.part and event.down is not None), None)
    if down is None:
        return
    if any(tree.get("checkpoint") is not None for tree in workload.trees()):
        text = f"{', '.join(down.part)} stalls and goes on where it was: no work since the last checkpoint is lost"
        yield Warning("stall-loses-nothing", f"{text}; `failures` of a `train` says what crashes cost", down.place)
