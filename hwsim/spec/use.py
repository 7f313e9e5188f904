"""Resolution of `use: NAME`: merge a part, machine, model or runtime of the library or another file with overriding keys.

Overrides are merged recursively, before the parameters and the `use:` of the used file are resolved, so that a machine can
override parts and parameters of a machine inside it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from hwsim.spec.expression import KEPT, mentions, parameters, substitute
from hwsim.spec.library import find, located, of_user, role
from hwsim.spec.memo import memo_table, memoized_entries
from hwsim.spec.mistakes import Mistakes, SpecError, did_you_mean
from hwsim.spec.numbers import with_origins
from hwsim.spec.tree import MAX_DEPTH, Tree
from hwsim.spec.yaml_parser import read

FORMATS: Final = {
    "machine": "machine/1",
    "part": "part/1",
    "workload": "workload/1",
    "model": "model/1",
    "runtime": "part/1",
    "framework": "part/1",
    "study": "study/1",
    "plan": "plan/1",
    "failures": "failures/1",
    "prices": "prices/1",
    "scores": "scores/1",
}
_MAX_USES: Final = 100_000
_FOR_ALL: Final = ("let", "source", "ref", "spread", "value", "kind")  # entries of a file on which other entries may depend
_MOST_KEPT: Final = 4  # memoized resolved files per study
_PART_KEYS: Final = ("kind", "name", "notes", "class", "power", "price")  # keys of a part that it loses inside another part
_OF_NUMBERS: Final = {"source", "ref"}  # keys next to the value of a number


def check_header(tree: Tree, expected: str, mistakes: Mistakes) -> bool:
    """Return whether a file has the expected format (`hwsim: machine/1`); else add a mistake."""
    header = tree.get("hwsim")
    if not tree.is_mapping:
        mistakes.add(tree.place, f"expected a mapping, got {tree.what()}", f"its first line is 'hwsim: {expected}'")
    elif header is None:
        mistakes.add(tree.place, "'hwsim' is missing", f"the first line is the format: 'hwsim: {expected}'")
    elif header.value != expected:
        formats = sorted(set(FORMATS.values()))
        if isinstance(header.value, str) and header.value in formats:
            mistakes.add(header.place, f"expected a file of format '{expected}', got '{header.value}'")
        else:
            near = did_you_mean(header.value, formats) if isinstance(header.value, str) else None
            mistakes.add(header.place, f"{header.what()} is not a known format", near or f"write {expected}")
    else:
        return True
    return False


def merge(base: Tree, over: Tree) -> Tree:
    """Return `base` with the overrides of `over`: mappings are merged by key; scalars and lists replace the base value.

    A mapping over a list of named mappings changes the named elements: `links: {fabric: {use: hdr200}}`. An element without a
    name is selected by its kind, if the kind is unique.
    """
    if isinstance(base.value, dict) and isinstance(over.value, dict):
        is_number = "value" in base.value  # a new value does not keep the source of the old one
        if "value" in over.value or (is_number and not over.value.keys() <= _OF_NUMBERS):
            return replacing_value(base, over)
        entries = dict(base.value)
        for key, child in over.value.items():
            entries[key] = merge(entries[key], child) if key in entries else child
        replaced = over.over or next((entries[key].over for key in over.value if entries[key].over is not None), None)
        return Tree(entries, over.place, {**base.keys, **over.keys}, over.origin, replaced)
    if isinstance(base.value, list) and isinstance(over.value, dict) and over.value:
        kinds = [None if child.text("name") else child.text("kind") for child in base.value]
        index_of = {kind: index for index, kind in enumerate(kinds) if kind and kinds.count(kind) == 1}
        index_of |= {name: index for index, child in enumerate(base.value) if (name := child.text("name"))}
        if all(key in index_of for key in over.value):
            elements = list(base.value)
            for key, child in over.value.items():
                elements[index_of[key]] = merge(elements[index_of[key]], child)
            return replace(base, value=elements)
    return replacing_value(base, over)


def replacing_value(base: Tree, over: Tree) -> Tree:
    """Return `over` with `base` as its innermost replaced value; an equal number leaves `base` unchanged."""
    if over.over is not None:
        return Tree(over.value, over.place, over.keys, over.origin, replacing_value(base, over.over))
    new, old = (None if over.is_mapping or over.origin is not None else over.quantity), base.quantity
    if new is not None and old is not None and of_user(over) and math.isclose(new.value, old.value, rel_tol=1e-12):
        return base
    return Tree(over.value, over.place, over.keys, over.origin, base)


def resolve(tree: Tree, mistakes: Mistakes, *, kind: str = "machine", kept: frozenset[str] = KEPT) -> Tree:
    """Return the tree of a file with parameters substituted and every `use:` merged.

    Args:
        kind: kind of the file, and of the file of a `use:` at its top level.
        kept: names whose values are known only later, which remain in the tree; ignored for a machine.
    """
    earlier: dict[Any, tuple[Tree, Tree]] | None = memo_table("resolved")
    if earlier is not None and (before := earlier.get((id(tree), kind, kept))) is not None:
        return before[1]
    mistake_count, resolved = len(mistakes), _by_entry(tree, kind, kept)
    if resolved is None:
        resolved = _Resolver(mistakes, kept).whole(tree, kind, ())
    if earlier is not None and len(mistakes) == mistake_count:
        while len(earlier) >= _MOST_KEPT:
            del earlier[next(iter(earlier))]
        earlier[id(tree), kind, kept] = tree, resolved
    return resolved


def _by_entry(tree: Tree, kind: str, kept: frozenset[str]) -> Tree | None:
    """Resolve a file entry by entry, memoized for equal entries of a study's runs; None if that is not possible.

    An entry depends on itself and on the parameters and sources of the file.
    """
    let = tree.get("let")
    if memo_table("entries") is None or not isinstance(tree.value, dict) or "use" in tree.value:
        return None
    if let is not None and not (isinstance(let.value, dict) and all(map(_is_plain, let.value.values()))):
        return None  # list parameters count towards the size of the entire file
    common: dict[str, Tree] = {key: tree.value[key] for key in _FOR_ALL if key in tree.value}

    def resolve_entry(key: str, entry: Tree) -> tuple[Tree | None, int]:
        resolver = _Resolver(Mistakes(), kept)
        inside = {name: value for name, value in common.items() if name != "let" or mentions(entry)} | {key: entry}
        resolved = resolver.whole(Tree(inside, tree.place, tree.keys, tree.origin), kind, ())
        return None if len(resolver.mistakes) else resolved.get(key), resolver.uses

    results = memoized_entries(f"entries of a {kind}", tree, resolve_entry, (*common.values(), kept))
    entries = {key: resolved for key, (resolved, _) in results.items() if resolved is not None}
    if len(entries) < len(results) or sum(uses for _, uses in results.values()) > _MAX_USES:  # integers
        return None  # report all mistakes of the file together
    let = entries.pop("let", None)
    inside = tree.having(entries)
    return inside if let is None else inside.put("let", let)


def _is_plain(tree: Tree) -> bool:
    return not isinstance(tree.value, dict | list)


def used_file(tree: Tree, kind: str) -> Tree | None:
    """Return the tree of the file that a mapping's `use:` names; None without `use:`. Raise SpecError."""
    name = tree.get("use")
    if name is None or not isinstance(name.value, str):
        return None
    return read(find(kind, name.value, name.place.folder, name.place))


def readable_used_file(tree: Tree, kind: str) -> Tree | None:
    """Return the tree of the file that a mapping's `use:` names; None if it cannot be read."""
    name = tree.get("use")
    if name is None or not isinstance(name.value, str) or located(kind, name.value, name.place.folder) is None:
        return None
    try:
        return used_file(tree, kind)
    except SpecError:
        return None


class _Resolver:
    def __init__(self, mistakes: Mistakes, kept: frozenset[str]) -> None:
        self.mistakes, self.kept = mistakes, kept
        self.uses = 0
        self.depth = 0
        self.files: dict[Path, Tree | None] = {}
        self.known: dict[tuple[Path, str], Tree | None] | None = memo_table("used")

    def whole(self, tree: Tree, kind: str, path: tuple[Path, ...]) -> Tree:
        """Resolve a file: first its own `use:`, then its parameters, then the `use:` of its entries."""
        tree, path = self._follow(with_origins(tree), kind, path)
        kept = () if kind == "machine" else self.kept
        names = parameters(tree.get("let"), self.mistakes, kept=kept)
        inside = substitute(tree.without("let"), names, self.mistakes, kept)
        let = tree.get("let")
        return self._children(inside if let is None else inside.put("let", let), path)

    def _children(self, tree: Tree, path: tuple[Path, ...]) -> Tree:
        if self.depth >= MAX_DEPTH:
            self.mistakes.add(tree.place, f"nested more than {MAX_DEPTH} levels deep, including used files")
            return tree
        self.depth += 1
        if isinstance(tree.value, dict):
            inside = tree.text("kind") not in (None, "machine")  # `memory: {use: ddr4-3200}` of a part is not a part
            entries = dict(tree.value)
            for key, child in tree.value.items():
                if key != "let" and isinstance(child.value, dict | list):
                    entries[key] = self._node(child, key, path, inside=inside)
            tree = tree.having(entries)
        elif isinstance(tree.value, list):
            tree = tree.having([self._node(child, "", path) for child in tree.value])
        self.depth -= 1
        return tree

    def _node(self, tree: Tree, key: str, path: tuple[Path, ...], *, inside: bool = False) -> Tree:
        if tree.get("use") is None:
            return self._children(tree, path) if isinstance(tree.value, dict | list) else tree
        part = self.whole(tree, tree.text("kind") or key or "part", path)
        return part.without(*_PART_KEYS) if inside else part

    def _follow(self, tree: Tree, kind: str, path: tuple[Path, ...]) -> tuple[Tree, tuple[Path, ...]]:
        """The tree merged with the file that it uses, recursively."""
        first = tree.get("use")
        while (name := tree.get("use")) is not None:
            self.uses += 1
            if not isinstance(name.value, str):
                self.mistakes.add(name.place, f"`use`: expected a name, got {name.what()}")
                break
            if self.uses > _MAX_USES or len(path) > 50:
                self.mistakes.add(name.place, "too many nested `use:`")
                break
            try:
                file = find(kind, name.value, name.place.folder, name.place)
            except SpecError as error:
                self.mistakes.extend(error.mistakes)
                break
            if file.resolve() in path:
                cycle = " -> ".join(file_.stem for file_ in (*path, file.resolve()))
                self.mistakes.add(name.place, f"`use` forms a cycle of files: {cycle}")
                break
            path = (*path, file.resolve())
            base = self._file(file, kind)
            if base is None:
                break
            next_use, stated = base.get("use"), tree.text("kind")
            tree = merge(base.without("hwsim"), tree.without("use"))
            made = base.get("kind")
            if made is not None and stated is not None and isinstance(made.value, str) and role(made.value) == role(stated):
                tree = tree.put("kind", made)  # `kind: disk, use: hdd-7200rpm` is a hard disk
            if next_use is None:
                break
            tree = tree.put("use", next_use)
        return (tree if first is None else tree.put("use", first)), path

    def _file(self, file: Path, kind: str) -> Tree | None:
        if self.known is not None and (file, kind) in self.known:
            return self.known[file, kind]
        if file not in self.files:
            try:
                tree = read(file)
            except SpecError as error:
                self.mistakes.extend(error.mistakes)
                self.files[file] = None
                return None
            usable = check_header(tree, FORMATS.get(kind, "part/1"), self.mistakes)
            self.files[file] = with_origins(tree) if usable else None
            if usable and self.known is not None:
                self.known[file, kind] = self.files[file]
        return self.files[file]
