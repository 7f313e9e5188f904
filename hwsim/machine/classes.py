"""Class defaults: an omitted key of a part gets the value of its generation, else of its vendor, else of its kind.

The files `machines/classes/gpu/nvidia/hopper.yaml`, `gpu/nvidia.yaml` and `gpu.yaml` contain these values in the form of a part.
Each number has the number of devices from which it was derived (`parts`) and their `spread`: the standard deviation of its
logarithm. A key that a part states is never changed, even if it is 0 or 100 %. With `class: ideal` of a part or of the machine,
nothing is filled in.

    launch: {stream: {value: 2.54 us, spread: 3 %, parts: 2, ref: "..."}}
    l2: {latency: {value: 213 / $clock, spread: 9 %, parts: 3}}           expression of numbers such as $clock, $sms
    bandwidth: {value: [36 B * $clock * $sms, 2 TB/s], ...}               first one that can be evaluated

A mapping can state `spread`, `parts` and `ref` for all of its numbers. A mapping or a number can have conditions: `needs: sms`
(only if the part states `sms`), `unless: bandwidth` (only if it does not). A mapping with `whole: true` is used only if the part
does not have that mapping at all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

from hwsim.machine.proportions import before_changes, changed_numbers, scale_fitted
from hwsim.records import dataclass
from hwsim.spec import ExpressionError, Mistakes, Origin, Tree, did_you_mean, evaluate, names
from hwsim.spec.library import folder
from hwsim.spec.yaml_parser import read
from hwsim.units import RATIO, Quantity, UnitError, parse, parse_as

IDEAL: Final = "ideal"
HEADER: Final = "class/1"
Stand = Literal["device", "generation", "outside"]
CASES: Final[tuple[Stand, ...]] = get_args(Stand)
_INSIDE: Final = {"raid": ("hdd", "ssd", "disk", "volume")}  # keys of a part that contain other parts
_OF_NUMBERS: Final = ("spread", "parts", "ref")
_CONDITIONS: Final = ("needs", "unless", "whole")
_OF_FILES: Final = ("hwsim", "kind", "name", "notes", "case")


@dataclass(frozen=True, slots=True)
class Class:
    """A class of a part.

    Args:
        path: name below the kind, such as "nvidia/hopper".
        guessed: how it was guessed; "": the part states it.
    """

    path: str
    guessed: str = ""


def class_of(tree: Tree, kind: str) -> Class:
    """Return the class that a part states, or that follows from its other keys.

    >>> from hwsim.spec import tree_of
    >>> class_of(tree_of({"vendor": "nvidia", "generation": "hopper"}), "gpu").path
    'nvidia/hopper'
    """
    stated = tree.text("class")
    if stated is not None:
        return Class(stated)
    vendor = tree.text("vendor")
    if vendor is not None:
        generation = tree.text("generation")
        return Class(vendor if generation is None else f"{vendor}/{generation}")
    guess = _GUESSES.get(kind)
    return guess(tree) if guess is not None else Class("")


def check_class(tree: Tree, kind: str, mistakes: Mistakes) -> None:
    """Add a mistake for a `class:` that does not exist."""
    stated = tree.get("class")
    if stated is None or not isinstance(stated.value, str) or stated.value == IDEAL:
        return
    if not _file(f"{kind}/{stated.value}", None):
        start = f"{kind}/"
        paths = [IDEAL, *(name.removeprefix(start) for name in names("class") if name.startswith(start))]
        hint = did_you_mean(stated.value, paths)
        mistakes.add(stated.place, f"unknown class '{stated.value}' of {kind}", hint)


def misspelt(tree: Tree, kind: str) -> str:
    """Return a message if vendor or generation is probably misspelt; else "".

    >>> from hwsim.spec import tree_of
    >>> misspelt(tree_of({"vendor": "nvidia", "generation": "hoper"}), "gpu"), misspelt(tree_of({"vendor": "acme"}), "gpu")
    ("there are no defaults of class 'nvidia/hoper' (did you mean 'nvidia/hopper'?)", '')
    """
    path = class_of(tree, kind).path if tree.text("vendor") is not None else ""
    if not path or _file(f"{kind}/{path}", None):
        return ""
    start = f"{kind}/"
    hint = did_you_mean(path, [name.removeprefix(start) for name in names("class") if name.startswith(start)])
    return f"there are no defaults of class '{path}' ({hint})" if hint is not None and hint.startswith("did you mean") else ""


def with_class_defaults(tree: Tree, kind: str, *, ideal: bool = False, root: Path | None = None) -> Tree:
    """Return the mapping of a part or link with class defaults filled in.

    Args:
        tree: mapping of the part or link.
        kind: kind of the part or link.
        ideal: whether the machine states `class: ideal`, which applies to parts without a class of their own.
        root: folder of the classes, instead of the library's.
    """
    if changes := changed_numbers(tree, kind):
        return scale_fitted(with_class_defaults(before_changes(tree, changes), kind, ideal=ideal, root=root), kind, changes)
    stated = tree.text("class")
    if stated == IDEAL or (ideal and stated is None) or not tree.is_mapping:
        return tree
    for key in _INSIDE.get(kind, ()):
        member = tree.get(key)
        if member is not None:
            tree = tree.put(key, with_class_defaults(member, key, root=root))
    steps = [kind, *filter(None, class_of(tree, kind).path.split("/"))]
    for depth in range(len(steps), 0, -1):
        before = _Stated(tree)  # `unless` excludes what is stated, not what the same class has just filled in
        for section in _file("/".join(steps[:depth]), root):  # single numbers first, because mappings can depend on them
            tree = _filled(tree, section, _Stated(tree), before)
    return tree


def completed_file(tree: Tree, *, ideal: bool = False) -> Tree:
    """Return a resolved machine or part with all defaults filled in, as it is simulated."""
    kind = tree.text("kind")
    if kind is not None and kind != "machine" and tree.get("parts") is None:
        return with_class_defaults(tree, kind, ideal=ideal)
    ideal = ideal or tree.text("class") == IDEAL
    parts, links = tree.get("parts"), tree.get("links")
    if parts is not None:
        inside = {name: completed_file(part, ideal=ideal) for name, part in parts.items()}
        tree = tree.put("parts", replace(parts, value=inside))
    if links is not None and links.is_list:
        wires = [with_class_defaults(link, link.text("kind") or "", ideal=ideal) for link in links.elements()]
        tree = tree.put("links", replace(links, value=wires))
    return tree


def defaulted_parts(tree: Tree, name: str = "") -> Iterator[tuple[str, Mapping[str, int]]]:
    """Yield each part and link with defaults in the result of `completed_file`: name, and number of defaults by class."""
    kind = tree.text("kind")
    if kind is not None and kind != "machine" and tree.get("parts") is None:
        classes = Counter(origin.ref.rpartition(",")[0].rpartition(",")[0] for origin in _defaults(tree))
        if classes:
            yield name or kind, classes
        return
    start = f"{name}." if name else ""
    parts, links = tree.get("parts"), tree.get("links")
    for key, part in parts.items() if parts is not None else ():
        yield from defaulted_parts(part, start + key)
    for link in links.elements() if links is not None else ():
        yield from defaulted_parts(link, start + (link.text("name") or link.text("kind") or "link"))


def _defaults(tree: Tree) -> Iterator[Origin]:
    if isinstance(tree.value, dict):
        for child in tree.value.values():
            yield from _defaults(child)
    elif tree.origin is not None and tree.origin.kind == "default":
        yield tree.origin


# ---- files ----


class _Devices(NamedTuple):
    """A basis of a file's numbers: description of the devices, and the resulting case of uncertainty."""

    called: str
    case: Stand


@dataclass(frozen=True, slots=True)
class _Number:
    values: tuple[Any, ...]
    origin: Origin
    needs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Section:
    entries: Mapping[str, _Section | _Number]
    needs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    whole: bool = False


@cache
def _file(name: str, root: Path | None, /) -> tuple[_Section, ...]:
    """Return the file of a class such as "gpu/nvidia": (numbers, mappings); empty if it does not exist."""
    path = (root or folder("class")) / f"{name}.yaml"
    if ".." in path.parts or not path.is_file():
        return ()
    tree = read(path)
    stated = tree.text("case")
    default: Stand = "device" if name.count("/") == 2 else "generation"
    case = next((known for known in CASES if known == stated), default)
    called = name.removeprefix("gpu/")
    if case == "generation":
        called += ", other generations" if name.startswith("gpu/") else " of any kind"
    section = _section(tree.without(*_OF_FILES), _Devices(called, case), {})
    numbers = {key: entry for key, entry in section.entries.items() if isinstance(entry, _Number)}
    return _Section(numbers), _Section({key: entry for key, entry in section.entries.items() if key not in numbers})


def _section(tree: Tree, name: _Devices, outer: Mapping[str, Any]) -> _Section:
    inner = {**outer, **{key: node.value for key, node in tree.items() if key in _OF_NUMBERS}}
    entries: dict[str, _Section | _Number] = {}
    for key, child in tree.items():
        if key in _OF_NUMBERS or key in _CONDITIONS:
            continue
        if child.is_mapping and child.get("value") is None:
            entries[key] = _section(child, name, inner)
        else:
            entries[key] = _number(child, name, inner)
    undivided = tree.get("whole")
    return _Section(entries, _words(tree, "needs"), _words(tree, "unless"), undivided is not None and undivided.value is True)


def _words(tree: Tree, key: str) -> tuple[str, ...]:
    found = tree.get(key)
    return tuple(str(element.value) for element in found.elements()) if found is not None else ()


def _number(tree: Tree, name: _Devices, outer: Mapping[str, Any]) -> _Number:
    stated = {**outer, **{key: node.value for key, node in tree.items() if key in _OF_NUMBERS}}
    number = tree.get("value") or tree
    parts, spread = int(stated.get("parts", 0)), stated.get("spread")
    if parts == 0:  # no device was measured, whatever the class
        name = _Devices(name.called.partition(",")[0], "outside")
    called, case = name
    devices = f"{parts} part{'s' if parts > 1 else ''}" if parts else "no data"
    ref = f"{'outside, ' if case == 'outside' else ''}{called}, {devices}, {'no spread known' if spread is None else spread}"
    origin = Origin("default", ref, None if spread is None else parse_as(spread, RATIO), case)
    return _Number(tuple(element.value for element in number.elements()), origin, _words(tree, "needs"), _words(tree, "unless"))


# ---- filling in ----


class _Stated:
    """A lookup of the keys of a part, for conditions and expressions of its class."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._names: dict[str, Any] | None = None

    def has(self, path: str) -> bool:
        """Return whether the part has a key, such as "flop.fp8"."""
        node: Tree | None = self.tree
        for key in path.split("."):
            node = node.get(key) if node is not None else None
        return node is not None and node.value is not None

    def names(self) -> dict[str, Any]:
        """Return its numbers by path, with _ instead of dots."""
        if self._names is None:
            self._names = dict(_numbers(self.tree, ""))
        return self._names


def _numbers(tree: Tree, path: str) -> Iterator[tuple[str, Any]]:
    for key, child in tree.items():
        name = f"{path}_{key}" if path else key
        node = child.get("value") or child
        if node.is_mapping:
            yield from _numbers(node, name)
        elif isinstance(node.value, Quantity) or (isinstance(node.value, int | float) and not isinstance(node.value, bool)):
            if isinstance(node.value, Quantity) or not name.startswith("flop_"):  # a peak without a unit is a mistake
                yield name, node.value
        elif isinstance(node.value, str) and node.value[:1].isdigit():
            try:
                yield name, parse(node.value)
            except UnitError:
                continue


def _filled(tree: Tree, section: _Section, stated: _Stated, before: _Stated) -> Tree:
    """Return the mapping with the missing keys of the section added."""
    entries: dict[str, Tree] | None = None
    for key, entry in section.entries.items():
        present = tree.get(key)
        made: Tree | None
        if isinstance(entry, _Number):
            made = _evaluated(entry, stated, tree) if present is None and _holds(entry, stated, before) else None
        elif not _holds(entry, stated, before) or (
            present is not None and (entry.whole or not present.is_mapping or present.get("value"))
        ):
            made = None
        else:
            base = Tree({}, tree.place) if present is None else present
            made = _filled(base, entry, stated, before)
            made = None if made is base else made
        if made is not None:
            entries = dict(tree.items()) if entries is None else entries
            entries[key] = made
    return tree if entries is None else replace(tree, value=entries)


def _holds(entry: _Section | _Number, stated: _Stated, before: _Stated) -> bool:
    return all(stated.has(path) for path in entry.needs) and not any(before.has(path) for path in entry.unless)


def _evaluated(number: _Number, stated: _Stated, parent: Tree) -> Tree | None:
    for value in number.values:
        if not (isinstance(value, str) and ("$" in value or "(" in value)):
            return Tree(value, parent.place, origin=number.origin)
        try:
            result = evaluate(value, stated.names())
        except (ExpressionError, UnitError, ZeroDivisionError):
            continue
        if not isinstance(result, Tree):
            return Tree(result, parent.place, origin=number.origin)
    return None


# ---- classes of parts that do not say theirs ----


@cache
def _gpu_names() -> tuple[tuple[str, str], ...]:
    """Return (class of GPUs, pattern of product names) pairs; the first match counts."""
    lines = Path(__file__).with_name("gpu_names.txt").read_text(encoding="utf-8").splitlines()
    return tuple((line[:24].rstrip(), line[24:]) for line in lines)


def _guessed_gpu(tree: Tree) -> Class:
    """Guess the class by the product name, else by the newest data type."""
    for key in ("name", "use"):
        text = (tree.text(key) or "").lower().replace("-", " ").replace("_", " ")
        for path, pattern in _gpu_names() if text else ():
            if re.search(pattern, text):
                return Class(path, f"by its {'name' if key == 'name' else 'part'}")
    flop = tree.get("flop") or tree
    formats = {key for key, _ in flop.items()}
    for newest, path in (
        ("fp4", "nvidia/blackwell"),
        ("fp8", "nvidia/hopper"),
        ("bf16", "nvidia/ampere"),
        ("int8", "nvidia/turing"),
    ):
        if newest in formats:
            return Class(path, f"by its {newest} peak")
    return Class("", "by no key")


def _guessed_cpu(tree: Tree) -> Class:
    """Guess the class by the instruction sets."""
    core = tree.get("core")
    isa = core.get("isa") if core is not None else None
    classes = {key for key, _ in isa.items()} if isa is not None else set()
    if classes & {"sse", "avx", "avx2", "avx512"}:
        return Class("x86")
    return Class("arm") if classes & {"neon", "sve"} else Class("")


def _by_key(key: str, start: str = "") -> Callable[[Tree], Class]:
    """Return a function that guesses the class by a key, such as the generation of a link or the protocol of a NIC."""

    def guess(tree: Tree) -> Class:
        node = tree.get(key)
        return Class("" if node is None or isinstance(node.value, dict | list) else f"{start}{node.value}")

    return guess


_GUESSES: Final[Mapping[str, Callable[[Tree], Class]]] = {
    "gpu": _guessed_gpu,
    "cpu": _guessed_cpu,
    "pcie": _by_key("gen", "gen"),
    "nvlink": _by_key("gen", "gen"),
    "nic": _by_key("protocol"),
}
