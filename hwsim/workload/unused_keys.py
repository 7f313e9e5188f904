"""Detection of keys without effect on the machine or in combination with other keys.

Mistake: a key without effect on any machine (see `refuse_statement`, and the checks of pipelines and trainings).
Warning: a key that would have an effect on another machine, or with another value of another key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

from hwsim.devices import CannotCompute, Cpu, Gpu, Memory, Sockets
from hwsim.devices.kernels import MeasuredFunctions
from hwsim.families_interface import family_interface
from hwsim.machine import Machine, UnknownName
from hwsim.ops import OPS, CannotPlace, ExchangeOp, Scope
from hwsim.ops.op import CalledOp
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Tree, Warning, decode, did_you_mean, plan, substitute
from hwsim.spec.memo import MOST_BUILT, memoize_result
from hwsim.workload.file import Job, RankProgram, Runtime, Workload
from hwsim.workload.lower import programs_of
from hwsim.workload.programs import Program, find_programs

OF_A_CALL: Final = ("function", "form", "rows", "into", "among_others", "new_pages", "new_bytes", "since")
OF_COMPILED: Final = ("compile", "issue", "per_op", "starts", "fuse")
_USUAL: Final = ("elementwise", "random", "reduce")  # ops that call a library function by default
_OF_CORES: Final[Mapping[str, tuple[str, ...]]] = {
    "compute": ("remote", "threads"),
    "access": ("remote", "among_others", "into", "since"),
}


@dataclass(frozen=True, slots=True)
class CheckedOp:
    """An op of a file on its device.

    Args:
        keys: keys with another value than the default.
        program: first program that contains the op.
        device, model: name and model of the device; "" and None if unknown.
    """

    kind: str
    tree: Tree
    keys: frozenset[str]
    program: Program
    device: str
    model: Any

    @property
    def kernels(self) -> MeasuredFunctions | None:
        """Measured functions of the device; None if it is not a CPU."""
        own = self.model.model if isinstance(self.model, Sockets) else self.model
        return own.kernels if isinstance(own, Cpu) else None


def keys_without_effect(workload: Workload, machine: Machine, mistakes: Mistakes) -> tuple[Warning, ...]:
    """Return warnings for keys without effect on this machine; add a mistake for keys without effect on any machine."""
    warnings: list[Warning] = []
    calls: dict[tuple[str, str], list[CheckedOp]] = {}  # ops whose keys of a library call have no effect, by device and reason
    for given in _ops(workload, machine):
        refuse_statement(given.kind, given.tree, mistakes)
        _refuse_unknown(given, mistakes)
        warnings += _of_op(given)
        if given.keys & set(OF_A_CALL) and (reason := _why_no_call(given)):
            calls.setdefault((given.device, reason), []).append(given)
    warnings += [_not_measured(device, reason, ops) for (device, reason), ops in calls.items()]
    warnings += _of_runtimes(workload)
    for key in workload.families:
        warnings += family_interface(key).idle(workload, machine)
    return (*warnings, *_of_stalls(workload), *(_wider_formats(workload, machine) if workload.families else ()))


def _wider_formats(workload: Workload, machine: Machine) -> Iterator[Warning]:
    from hwsim.workload.number_formats import wider_formats

    return wider_formats(workload, machine)


def refuse_statement(kind: str, tree: Tree, mistakes: Mistakes) -> None:
    """Add a mistake for keys of an op that have no effect without another key."""
    if kind == "compute" and (tree.get("branches") is None) != (tree.get("mispredicted") is None):
        key, missing = ("branches", "mispredicted") if tree.get("mispredicted") is None else ("mispredicted", "branches")
        example = "mispredicted: 5 %" if missing == "mispredicted" else "branches: 1e8"
        mistakes.add(tree.key_place(key), f"`{key}` has no effect without `{missing}`", example)


# ---- the ops of a workload ----


def _ops(workload: Workload, machine: Machine) -> Iterator[CheckedOp]:
    """Every op with keys to check, on the device of the first program of each group."""
    programs = [(name, tree) for name, tree, _ in programs_of(workload)]
    trees, names = tuple(tree for _, tree in programs), tuple(name for name, _ in programs)

    def given() -> list[CheckedOp]:
        return [op for name, tree in programs for op in _of_program(name, tree, machine)]

    yield from memoize_result("given", (machine, *trees), given, also=names, most=MOST_BUILT)
    for key in workload.families:
        for tree in workload.trees(key):
            devices, ops = family_interface(key).ops(tree)
            ranks_of = RankProgram(tuple(devices), ()) if devices else None
            yield from _of_statements(ops, cache(partial(_first, "", tree, ranks_of, machine)))


def _of_program(name: str, tree: Tree, machine: Machine) -> Iterator[CheckedOp]:
    ranks_of = RankProgram(_names(tree.get("each")), ()) if tree.is_mapping and tree.get("each") is not None else None
    yield from _of_statements(_body(tree), cache(partial(_first, name, tree, ranks_of, machine)))


def _first(name: str, tree: Tree, ranks_of: RankProgram | None, machine: Machine) -> Program | None:
    return next(iter(find_programs(name, tree, ranks_of, machine, Mistakes(), 0 if ranks_of else None)), None)


def _of_statements(statements: list[Tree], first: Callable[[], Program | None]) -> Iterator[CheckedOp]:
    for tree in statements:
        for kind, inner in tree.items() if tree.is_mapping else ():
            if kind in ("repeat", "call"):
                yield from _of_statements(_body(inner), first)
            elif kind in OPS and inner.is_mapping:
                keys = _given(OPS[kind], inner)
                if keys and (program := first()) is not None:  # among many devices, finding it takes long
                    device, model = _placed(inner, program)
                    yield CheckedOp(kind, inner, keys, program, device, model)


def _given(cls: Any, tree: Tree) -> frozenset[str]:
    """The keys to check that have another value than the default."""
    checked = {*OF_A_CALL, "branches", "mispredicted", "threads", "remote", "kernels", "chunks", "isa", "region", "depth"}
    values = {key: value for key, value in tree.items() if key in checked}
    defaults = {entry.key: entry.default for entry in plan(cls)} if values else {}
    return frozenset(key for key, value in values.items() if value.value != defaults.get(key))


def _placed(tree: Tree, program: Program) -> tuple[str, Any]:
    """(device, model) of an op; ("", None) if it has no known device."""
    names = program.values
    scope: Scope = program.scope
    for key in ("device", "from", "to"):
        value = tree.get(key)
        if value is not None:
            text = substitute(value, names, Mistakes(), keep=()).value
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


def _refuse_unknown(given: CheckedOp, mistakes: Mistakes) -> None:
    function = given.tree.text("function")
    if not function:
        return
    from hwsim.devices.functions import FUNCTIONS

    if function in FUNCTIONS or _is_empty(given.tree):
        return  # no elements: a view, without any computation
    measured = [name.partition(" ")[0] for name in given.kernels.functions] if given.kernels else []
    if function not in measured:
        where = "NumPy or of the `kernels` of " + given.device if measured else "NumPy"
        hint = did_you_mean(function, [*measured, *FUNCTIONS]) or "omit `function`, or add it to the `kernels` of the cpu"
        mistakes.add(given.tree.key_place("function"), f"'{function}' is not a function of {where}", hint)


def _is_empty(tree: Tree) -> bool:
    count = tree.get("count")
    return count is not None and count.value == 0


def _of_op(given: CheckedOp) -> Iterator[Warning]:
    """Warnings for keys without effect on this device or in combination with other keys."""
    kind, keys, tree = given.kind, given.keys, given.tree
    if issubclass(OPS[kind], ExchangeOp) and "chunks" in keys and tree.text("steps") != "explicit":
        yield no_effect(tree, ["chunks"], "without `steps: explicit` a collective is one op per phase", "add `steps: explicit`")
    if isinstance(given.model, Gpu | Memory):
        cpu_keys = [key for key in _OF_CORES.get(kind, ()) if key in keys]
        if cpu_keys:
            kind_of_part = "gpu" if isinstance(given.model, Gpu) else "memory"
            yield no_effect(tree, cpu_keys, f"{given.device} is a {kind_of_part}", "use it with a cpu only")
    elif "kernels" in keys and isinstance(given.model, Cpu | Sockets):
        yield no_effect(tree, ["kernels"], f"{given.device} is a cpu, which starts no kernels", "use it with a gpu only")
    if "isa" in keys and (kind == "random" or tree.text("mix") == "random"):
        yield no_effect(tree, ["isa"], "the cpu has its own rate `random` for random numbers", "change `cores` instead")
    elif "isa" in keys and given.kernels is not None and not _why_no_call(given) and issubclass(OPS[kind], CalledOp):
        yield no_effect(tree, ["isa"], f"the time of this call was measured on {given.device}", "change `kernels` instead")
    if kind == "compute" and "threads" in keys and tree.get("instructions") is None:
        yield no_effect(tree, ["threads"], "threads share the instructions of an op, and it has none", "add `instructions`")
    if "remote" in keys and isinstance(given.model, Cpu | Sockets) and _as_if_near(given):
        yield no_effect(tree, ["remote"], "the cores, not remote memory, are the bottleneck", "use more `cores`")
    if given.model is not None and given.model.kind == "disk":
        idle = ["depth"] if "depth" in keys and tree.text("access") != "random" else []
        if "region" in keys and not (kind == "write" and given.model.size):  # rewrites do not fill the disk
            idle.append("region")
        if idle:
            reason = f"{given.device} has kind disk, whose speed is equal everywhere"
            yield no_effect(tree, idle, reason, "use kind ssd, hdd or filesystem")


def _as_if_near(given: CheckedOp) -> bool:
    """Whether the demand of an op is the same with all of its memory local."""
    op: Any = decode(substitute(given.tree, given.program.values, Mistakes(), keep=()), OPS[given.kind], Mistakes())
    try:
        costs = [variant.lower(given.program.scope).cost for variant in (op, replace(op, remote=0.0))] if op else []
    except (CannotCompute, CannotPlace, UnknownName):
        return False  # lowering reports the mistake
    return len(costs) == 2 and costs[0].demand == costs[1].demand


def _why_no_call(given: CheckedOp) -> str:
    """The reason why the keys of a library call have no effect; "" if they have one."""
    if not issubclass(OPS[given.kind], CalledOp) and given.kind != "access":
        return ""
    if isinstance(given.model, Gpu):
        return "the file of a gpu contains no library calls"
    if given.model is None or isinstance(given.model, Memory):
        return ""
    if given.kernels is None:
        return "its file contains no measured library calls (`kernels`)"
    if given.kind not in (*_USUAL, "matmul") and given.tree.get("function") is None:
        return f"a {given.kind} without `function` is not a library call"
    return ""


def _not_measured(device: str, reason: str, ops: list[CheckedOp]) -> Warning:
    """One warning for all ops of a device with the same reason, at the place of the first op."""
    keys = [key for key in OF_A_CALL if any(key in op.keys for op in ops)]
    kinds = ", ".join(sorted({op.kind for op in ops}))
    subject = f"{len(ops)} ops ({kinds})" if len(ops) > 1 else kinds
    has, plural = ("has", "") if len(keys) == 1 else ("have", "s")
    text = f"key{plural} {_listed(keys)} of {subject} {has} no effect on {device}: {reason}; memory traffic sets the time"
    return Warning("not-measured", text, ops[0].tree.place)


def no_effect(tree: Tree, keys: Sequence[str], reason: str, instead: str) -> Warning:
    """Return a warning for keys without effect.

    Args:
        reason: why they have no effect.
        instead: which keys or parts have the desired effect.
    """
    has = "has" if len(keys) == 1 else "have"
    return Warning("no-effect", f"{_listed(keys)} {has} no effect: {reason}; {instead}", tree.key_place(keys[0]))


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(f"`{key}`" for key in keys)


# ---- runtimes, events ----


def _of_runtimes(workload: Workload) -> Iterator[Warning]:
    """Warnings for a runtime without a program, and for keys of compiled bodies if no body is compiled."""
    programs = list(programs_of(workload))
    runtimes = {id(runtime): runtime for _, _, runtime in programs if runtime is not None}
    stated: list[tuple[str, Workload | Job]] = [("workload", workload)]
    stated += [(f"job {name}", job) for name, job in (workload.jobs or {}).items() if not job.skip]
    for owner, part in stated:
        if part.runtime is not None and id(part.runtime) not in runtimes:
            yield Warning("no-effect", f"`runtime` has no effect: the {owner} has no program that uses it", part.place)
    for runtime in runtimes.values():
        compiled = [key for key in OF_COMPILED if getattr(runtime, key) != _default_of(key)]
        calls = runtime.call is not None and any(_has_call(_body(tree)) for _, tree, other in programs if other is runtime)
        if runtime.call is None and compiled:
            text = f"{_listed(compiled)} of the runtime have no effect: without `call` the runtime does not compile"
            yield Warning("no-effect", text, workload.place)
        elif runtime.call is not None and not calls:
            text = f"{_listed(['call', *compiled])} of the runtime have no effect: no program contains a `call`"
            yield Warning("no-effect", text, workload.place)


@cache
def _default_of(key: str) -> object:
    return next(entry.default for entry in plan(Runtime) if entry.key == key)


def _has_call(statements: list[Tree]) -> bool:
    for tree in statements:
        for kind, inner in tree.items() if tree.is_mapping else ():
            if kind == "call" or (kind == "repeat" and _has_call(_body(inner))):
                return True
    return False


def _of_stalls(workload: Workload) -> Iterator[Warning]:
    """A warning if a part is down in a run that writes checkpoints, because a stall loses no work."""
    down = next((event for event in workload.events if event.part and event.down is not None), None)
    if down is None:
        return
    if any(tree.get("checkpoint") is not None for tree in workload.trees()):
        text = f"the `down` event of {', '.join(down.part)} is a stall, not a crash: no work since the last checkpoint is lost"
        yield Warning("no-work-lost", f"{text}; use `failures` of a `train` for crashes", down.place)
