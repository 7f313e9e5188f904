"""Checks of a workload's statements without a machine: mistakes, and warnings for probable typing errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hwsim.families_interface import family_interface
from hwsim.formats import format_quantity
from hwsim.ops import OPS, ExchangeOp, FetchOp
from hwsim.spec import Mistakes, Tree, Value, Warning, decode, did_you_mean, distinct_warnings, substitute
from hwsim.units import SIZE, parse_as
from hwsim.workload.file import Workload
from hwsim.workload.parser import STATEMENTS
from hwsim.workload.unused_keys import refuse_statement

_ANYONE: Final[dict[str, Value]] = {"self": "self", "rank": 0, "ranks": 1}  # values for any program of an `each`
_BITS: Final = re.compile(r"\d+(\.\d+)? ?([kMGT]i?)?b")
_MAKES: Final = ("writes", "updates")
_SUMS: Final = ("allreduce", "reduce", "reduce-scatter")  # of values that an op has to compute


def check_statements(workload: Workload, mistakes: Mistakes) -> None:
    """Add every mistake in the statements that is visible without a machine."""
    for statements in _programs(workload).values():
        for tree in _all(statements):
            check_op(tree, mistakes)
        _check_waits(list(_all(statements)), mistakes)
    for key in workload.families[::-1]:
        family_interface(key).check(workload, mistakes)


def suspicions(workload: Workload) -> tuple[Warning, ...]:
    """Return warnings for values read under a misspelt name, and for barriers that only one program names."""
    warnings: list[Warning] = []
    programs = _programs(workload)
    for statements in programs.values():
        ops = [(kind, inner) for tree in _all(statements) for kind, inner in _items(tree)]
        made = {name for _, inner in ops for key in _MAKES for name in _names(inner.get(key))}
        for kind, inner in ops:
            warnings += _of_op(inner, made, kind if kind in _SUMS and len(ops) > 1 else "")
    if len(programs) > 1:
        barriers: dict[str, list[str]] = {}
        for program, statements in programs.items():
            met = [inner for tree in _all(statements) for kind, inner in _items(tree) if kind == "barrier"]
            for name in sorted({inner.text("name") or "" if inner.is_mapping else str(inner.value) for inner in met}):
                barriers.setdefault(name, []).append(program)
        warnings += [
            Warning("lone-barrier", f"only program '{names[0]}' names barrier '{name}', so the barrier has no effect")
            for name, names in sorted(barriers.items())
            if len(names) == 1
        ]
        warnings += _collectives_apart(programs, [name for name, tree in _named(workload).items() if not tree.is_mapping])
    return distinct_warnings(warnings, *(family_interface(key).suspicions(workload) for key in workload.doors))


def _of_op(inner: Tree, made: set[str], reduction: str) -> Iterator[Warning]:
    """Yield a size in bits, and values that no op writes; `reduction`: the kind of an op that sums values of others."""
    size = inner.get("bytes")
    if size is not None and isinstance(size.value, str) and _BITS.fullmatch(size.value):
        shown = format_quantity(parse_as(size.value, SIZE), "B")
        text = f"`bytes: {size.value}` is a number of bits, {shown}; for bytes, write {size.value[:-1]}B"
        yield Warning("size-in-bits", text, size.place)
    for name in _names(inner.get("reads")):
        near = [] if name in made else [f"did you mean '{other}'?" for other in sorted(made) if _is_slip(name, other)]
        if near or (reduction and name not in made):
            effect = near[0] if near else f"this {reduction} waits for no op"
            text = f"no op writes the value '{name}' that is read here; {effect}"
            yield Warning("never-written", text, (inner.get("reads") or inner).place)


def _collectives_apart(programs: Mapping[str, tuple[Tree, ...]], alone: Sequence[str]) -> Iterator[Warning]:
    """Collectives that several single programs issue: each program represents all devices, so the bytes move several times."""
    issuers: dict[tuple[str, ...], dict[str, Tree]] = {}
    for program in alone:
        for tree in _all(programs[program]):
            for kind, inner in _items(tree):
                if issubclass(OPS.get(kind, FetchOp), ExchangeOp) and inner.is_mapping:
                    key = kind, inner.text("name") or "", *_names(inner.get("among"))
                    issuers.setdefault(key, {}).setdefault(program, inner)
    for (kind, name, *among), by_program in issuers.items():
        if len(by_program) > 1:
            exchange = f"{kind} '{name}'" if name else kind
            names = ", ".join(repr(program) for program in by_program)
            text = f"programs {names} run {len(by_program)} separate collectives ({exchange}) among {', '.join(among)}; "
            text += f"for a single collective, write one program with `each: [{', '.join(among)}]`"
            yield Warning("duplicate-collectives", text, next(iter(by_program.values())).place)


def _named(workload: Workload) -> Mapping[str, Tree]:
    """The programs by name; a single program has the name ""."""
    return {"": workload.program} if workload.program is not None else workload.programs or {}


def _programs(workload: Workload) -> dict[str, tuple[Tree, ...]]:
    return {name: _statements(tree) for name, tree in sorted(_named(workload).items())}


def _statements(tree: Tree | None) -> tuple[Tree, ...]:
    if tree is None:
        return ()
    if tree.is_mapping:
        return _statements(tree.get("do"))
    return tuple(tree.elements()) if tree.is_list else (tree,)


def _items(tree: Tree) -> list[tuple[str, Tree]]:
    return list(tree.value.items()) if isinstance(tree.value, dict) else []


def _all(statements: tuple[Tree, ...]) -> Iterator[Tree]:
    """Every statement, including nested ones."""
    for tree in statements:
        yield tree
        for kind, inner in _items(tree):
            if kind in ("repeat", "call"):
                yield from _all(_statements(inner.get("do")))


def _names(tree: Tree | None) -> tuple[str, ...]:
    """The names in the value of a key."""
    if tree is None:
        return ()
    if isinstance(tree.value, dict):
        return tuple(tree.value)
    values = [element.value for element in tree.elements()] if tree.is_list else [tree.value]
    return tuple(value for value in values if isinstance(value, str))


def _is_slip(first: str, second: str) -> bool:
    """Whether the names differ by swapped letters or by one missing letter; x_cpu and y_cpu are different names."""
    short, long = sorted((first, second), key=len)
    if len(long) < 4 or len(long) - len(short) > 1:
        return False
    if len(short) == len(long):
        return sorted(short) == sorted(long)
    return any(long[:index] + long[index + 1 :] == short for index in range(len(long))) and not long[-1].isdigit()


def check_op(tree: Tree, mistakes: Mistakes, of_stage: bool = False) -> None:
    """Add every mistake of a statement, or of an op of a pipeline stage."""
    items = _items(tree)
    if len(items) != 1:
        mistakes.add(tree.place, f"expected a statement with one key, such as `wait: all`, got {tree.what()}")
        return
    [(kind, inner)] = items
    cls: Any = OPS.get(kind) or (None if of_stage else STATEMENTS.get(kind))
    if cls is None:
        noun, kinds = ("op", [*OPS]) if of_stage else ("op or statement", [*OPS, *STATEMENTS])
        mistakes.add(tree.key_place(kind), f"there is no {noun} '{kind}'", did_you_mean(kind, kinds))
        return
    if not inner.is_mapping and (kind in ("wait", "barrier") or issubclass(cls, FetchOp)):
        return  # short form: only a name
    refuse_statement(kind, inner, mistakes)
    decode(substitute(inner, _ANYONE, mistakes, keep=()), cls, mistakes)


def _check_waits(statements: list[Tree], mistakes: Mistakes) -> None:
    """Add a mistake for each unknown name in `wait` and `after`."""
    ops = [(kind, inner) for tree in statements for kind, inner in _items(tree) if kind not in ("wait", "barrier", "repeat")]
    op_names = {inner.text("name") or kind for kind, inner in ops}
    values = {name for _, inner in ops for key in _MAKES for name in _names(inner.get(key))}
    for tree in statements:
        for kind, inner in _items(tree):
            mention = (inner.get("name") if inner.is_mapping else inner) if kind == "wait" else inner.get("after")
            for name in _names(mention):
                if name not in op_names and not (kind == "wait" and (name in values or name == "all")) and "$" not in name:
                    place = mention.place if mention else tree.place
                    noun, known = ("op or value", op_names | values) if kind == "wait" else ("op", op_names)
                    mistakes.add(place, f"there is no {noun} called '{name}'", did_you_mean(name, known))
