"""Split the difference between two pairs of files into changes that can be made one by one.

Another `use:` of a part or link is one change with all its keys; its count is a separate change. If both files use the same
part, each different key is a change. Names, notes and sources are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from hwsim.records import dataclass
from hwsim.spec import Mistakes, Tree, resolve

Steps = tuple[str | int, ...]
SAYS: Final = frozenset({"name", "notes", "source", "ref", "note", "expect", "hwsim"})  # keys without effect on results
IDENTITY: Final = ("use", "kind", "topology")  # keys that identify the kind of a mapping
APART: Final = "count"  # a separate change, besides the other keys of a part
LETTERS: Final = 40  # longest text of a value (characters)
NONE: Final = "none"
PRICE: Final = "price of the machine"
MANY: Final = 24  # number of changes in a workload above which only its top-level keys are compared


class Files(NamedTuple):
    """The two files of a run, with settings applied, and the price of the machine (USD/s) if costs are compared."""

    machine: Tree
    workload: Tree
    price: float = 0.0


@dataclass(frozen=True, slots=True)
class Parameter:
    """A change from the first files to the second.

    Args:
        name: name, such as `gpu`, `gpu.count`, `link uplink` or `workload.train.batch`; a parameter of the workload by its name.
        before: value in the first files, as text.
        after: value in the second files, as text.
        places: paths of the nodes to take from the second files: "machine" or "workload", then keys and list indices.
    """

    name: str
    before: str
    after: str
    places: tuple[Steps, ...]


def parameters(first: Files, second: Files) -> tuple[Parameter, ...]:
    """Return all changes from the first files to the second, by name."""
    machines = list(_walk(first.machine, second.machine, ("machine",), ()))
    workloads = list(_walk(first.workload, second.workload, ("workload",), ("workload",)))
    if _is_other(first.workload, second.workload):
        places = tuple(place for change in _top(first.workload, second.workload) for place in change.places)
        workloads = [Parameter("workload", _name(first.workload), _name(second.workload), places)]
    elif len(workloads) > MANY:
        workloads = list(_top(first.workload, second.workload))
    changes = sorted(_distinct([*_wiring(machines, first, second), *workloads]), key=lambda change: change.name)
    priced = [] if first.price == second.price else [Parameter(PRICE, _hourly(first), _hourly(second), ((PRICE,),))]
    return (*_in_full(changes, first, second), *priced)


def _hourly(files: Files) -> str:
    return f"{files.price * 3600:.3g} USD/h"


def _in_full(changes: Sequence[Parameter], first: Files, second: Files) -> Iterator[Parameter]:
    """Complete the values of changes from the used part if a file itself has none."""
    resolved: dict[int, Tree] = {}
    for change in changes:
        root, *steps = change.places[0]
        words = [change.before, change.after]
        for index, files in enumerate((first, second)):
            if words[index] == NONE and len(change.places) == 1 and root == "machine":
                resolved.setdefault(index, resolve(files.machine, Mistakes()))
                words[index] = _words(at_path(resolved[index], steps))
        yield replace(change, before=words[0], after=words[1])


def comparable(first: Tree, second: Tree, kind: str) -> tuple[Tree, Tree]:
    """Return both files in comparable form: with their `use:` resolved, unless it is the same."""
    if first.text("use") == second.text("use"):
        return first, second
    mistakes = Mistakes()
    both = [resolve(tree, mistakes, kind=kind).without("use", "let") for tree in (first, second)]
    mistakes.raise_if_any()
    return both[0], both[1]


def mixed(first: Files, second: Files, changes: Iterable[Parameter]) -> Files:
    """Return the files of A with a subset of the changes."""
    files = first
    for change in changes:
        for root, *steps in change.places:
            if root == PRICE:
                files = files._replace(price=second.price)
                continue
            at = 0 if root == "machine" else 1
            taken = at_path(second.machine if at == 0 else second.workload, steps)
            moved = _put(files.machine if at == 0 else files.workload, steps, taken)
            files = files._replace(machine=moved) if at == 0 else files._replace(workload=moved)
    return files


def joined(changes: Sequence[Parameter]) -> Parameter:
    """Join changes that cannot be made separately."""
    ordered = sorted(changes, key=lambda change: change.name)
    names, before, after = (" + ".join(words) for words in zip(*((c.name, c.before, c.after) for c in ordered), strict=True))
    return Parameter(names, before, after, tuple(place for change in ordered for place in change.places))


def at_path(tree: Tree | None, steps: Sequence[str | int]) -> Tree | None:
    """Return the node at a path; None if there is none."""
    for step in steps:
        if tree is None:
            return None
        if isinstance(step, int):
            tree = tree.value[step] if isinstance(tree.value, list) and step < len(tree.value) else None
        else:
            tree = tree.get(step)
    return tree


def _put(tree: Tree, steps: Sequence[str | int], new: Tree | None) -> Tree:
    """Return the tree with another node at a path; None removes the key, and its mapping if that becomes empty."""
    step, rest = steps[0], steps[1:]
    if isinstance(step, int):
        elements = list(tree.elements())
        elements[step] = _put(elements[step], rest, new) if rest else elements[step] if new is None else new
        return replace(tree, value=elements)
    if rest:
        inside = _put(tree.get(step) or Tree({}, tree.place), rest, new)
        return tree.without(step) if new is None and inside.is_mapping and not inside.items() else tree.put(step, inside)
    return tree.without(step) if new is None else tree.put(step, new)


def _walk(first: Tree | None, second: Tree | None, steps: Steps, words: tuple[str, ...]) -> Iterator[Parameter]:
    if _content(first) == _content(second):
        return
    if len(steps) > 1 and (first is None or second is None) and _is_override(first or second):
        first, second = first or Tree({}), second or Tree({})
    if first is None or second is None or first.is_mapping != second.is_mapping or _is_number(first) or _is_number(second):
        yield _change(first, second, steps, words)
    elif first.is_mapping:
        if len(steps) > 1 and any(_content(first.get(key)) != _content(second.get(key)) for key in IDENTITY):
            yield from _another(first, second, steps, words)
            return
        for key in _keys(first, second):
            if key not in SAYS or (key == "name" and isinstance(steps[-1], int)):
                yield from _walk(first.get(key), second.get(key), (*steps, key), _named(steps, words, key))
    elif first.is_list and second.is_list and _is_alike(first, second):
        for index, (ours, theirs) in enumerate(zip(first.elements(), second.elements(), strict=True)):
            inner = (*words[:-1], f"link {_link_name(theirs) or index}") if steps[-1] == "links" else (*words, str(index))
            yield from _walk(ours, theirs, (*steps, index), inner)
    else:
        yield _change(first, second, steps, words)


def _is_override(tree: Tree | None) -> bool:
    """Return whether a mapping overrides keys of a used part."""
    return tree is not None and tree.is_mapping and not _is_number(tree) and not any(tree.get(key) for key in IDENTITY)


def _named(steps: Steps, words: tuple[str, ...], key: str) -> tuple[str, ...]:
    """Return the words of a name with one more key; parts and parameters of the workload have their plain names."""
    if key == "parts":
        return words
    if steps == ("workload", "let"):
        return (key,)
    return (*words, key)


def _another(first: Tree, second: Tree, steps: Steps, words: tuple[str, ...]) -> Iterator[Parameter]:
    """Yield the replacement of a part with all its keys, and the change of its count."""
    own = [key for key in _keys(first, second) if key != APART and (key not in SAYS or key == "name")]
    yield Parameter(".".join(words), _called(first), _called(second), tuple((*steps, key) for key in own))
    yield from _walk(first.get(APART), second.get(APART), (*steps, APART), (*words, APART))


def _keys(first: Tree, second: Tree) -> list[str]:
    return list(dict.fromkeys([*(key for key, _ in first.items()), *(key for key, _ in second.items())]))


def _top(first: Tree, second: Tree) -> Iterator[Parameter]:
    """Yield the differing top-level keys of two workloads."""
    for key in _keys(first, second):
        if key not in SAYS and _content(first.get(key)) != _content(second.get(key)):
            yield _change(first.get(key), second.get(key), ("workload", key), ("workload", key))


def _is_other(first: Tree, second: Tree) -> bool:
    """Return whether two workloads have nothing in common, so that a mixture of them would mean nothing."""
    pairs = [(first.get(key), second.get(key)) for key in _keys(first, second) if key not in SAYS]
    names = [(set(one.plain()), set(two.plain())) for one, two in pairs if one and two and one.is_mapping and two.is_mapping]
    return bool(names) and not any(one & two for one, two in names)


def _name(workload: Tree) -> str:
    return workload.text("name") or "unnamed"


def _wiring(changes: list[Parameter], first: Files, second: Files) -> list[Parameter]:
    """Join the parts that only one machine has with the differing list of links."""

    def is_alone(change: Parameter) -> bool:
        _, *steps = change.places[0]
        both = [at_path(files.machine, steps) for files in (first, second)]
        return len(steps) > 1 and steps[-2] == "parts" and None in both

    together = [change for change in changes if is_alone(change) or change.places[0][-1] == "links"]
    return [*(change for change in changes if change not in together), joined(together)] if len(together) > 1 else changes


def _distinct(changes: Sequence[Parameter]) -> Iterator[Parameter]:
    """Yield the changes, with equal names numbered."""
    names = [change.name for change in changes]
    for index, change in enumerate(changes):
        before = names[:index].count(change.name)
        yield replace(change, name=f"{change.name} ({before + 1})") if names.count(change.name) > 1 else change


def _change(first: Tree | None, second: Tree | None, steps: Steps, words: tuple[str, ...]) -> Parameter:
    return Parameter(".".join(words), _words(first), _words(second), (steps,))


def _link_name(tree: Tree) -> str:
    between = tree.get("between")
    ends = "-".join(str(end.value) for end in between.elements()) if between is not None else ""
    return tree.text("name") or ends or tree.text("kind") or ""


def _called(tree: Tree) -> str:
    return tree.text("use") or tree.text("topology") or tree.text("kind") or _words(tree)


def _words(tree: Tree | None) -> str:
    if tree is None:
        return NONE
    if tree.is_list:
        count = len(tree.elements())
        return f"{count} entries" if count != 1 else "1 entry"
    if tree.is_mapping and not _is_number(tree):
        named = tree.text("use") or tree.text("kind")
        return named or f"{len(tree.items())} keys"
    text = str(_content(tree)) if not isinstance(_content(tree), bool) else str(_content(tree)).lower()
    return text if len(text) <= LETTERS else text[: LETTERS - 3] + "..."


def _is_number(tree: Tree) -> bool:
    return tree.is_mapping and tree.get("value") is not None


def _is_alike(first: Tree, second: Tree) -> bool:
    """Return whether two lists have matching elements: links between the same parts, or statements with the same keys."""
    ours, theirs = first.elements(), second.elements()
    return len(ours) == len(theirs) > 0 and all(_shape(a) == _shape(b) and _shape(a) for a, b in zip(ours, theirs, strict=True))


def _shape(tree: Tree) -> tuple[Any, ...]:
    if not tree.is_mapping:
        return ()
    ends = tree.get("between")
    if ends is not None:
        return ("between", str(ends.plain()))
    return tuple(sorted(key for key, _ in tree.items() if key not in SAYS))


def _content(tree: Tree | None) -> Any:
    """Return the content of a node without names and sources."""
    if tree is None:
        return None
    if _is_number(tree):
        return _content(tree.get("value"))
    if tree.is_mapping:
        return {key: _content(child) for key, child in tree.items() if key not in SAYS - {"name"}}
    if tree.is_list:
        return [_content(element) for element in tree.elements()]
    return tree.value
