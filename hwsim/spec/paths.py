"""`--set PATH=VALUE`: one kind of path for `--set`, `--vary`, `--require` and Python's `set={}`.

algorithm                   a parameter of the workload            let.nodes                  of both files, where they have it
machine.gpu.count           a key of a part                        machine.node.gpu.use       of a part inside a machine
machine.links.fabric.use    a key of a link                        workload.train.parallel.tp
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple

from hwsim.spec.mistakes import Mistake, Place, Source, SpecError, did_you_mean
from hwsim.spec.reading import read_text
from hwsim.spec.tree import Tree, tree_of
from hwsim.spec.use import laid, readable
from hwsim.spec.warning import Warning

_PART_KEYS: Final = ("use", "kind", "count", "let", "name", "source", "ref")


class Changed(NamedTuple):
    """Both trees after a change, and a warning about it."""

    machine: Tree
    workload: Tree
    warning: Warning | None = None


def apply_set(machine: Tree, workload: Tree, path: str, value: object) -> Changed:
    """The two trees with one value changed, before parameters and `use:` are worked out.

    A text is read as a YAML value; anything else is taken as it is. Raises SpecError on a path that leads nowhere.
    """
    shown = f"{path}={value}" if isinstance(value, str) else path
    if any(each in shown for each in "\r\n\0"):
        raise SpecError.of(Place("--set", 0, 0), f"one line is needed, not {shown!r:.80}")
    source = Source("--set", shown)
    place = Place("--set", 1, 1, source)
    new = _value(path, value, source)
    steps = path.split(".")
    if not all(steps) or path != path.strip():
        raise SpecError.of(place, f"'{path}' is not a path", "names with dots between them: machine.gpu.count")
    if steps[0] == "machine" and len(steps) > 1:
        return Changed(_in_machine(machine, steps[1:], new, place), workload)
    if steps[0] == "workload" and len(steps) > 1:
        changed = _in_tree(workload, steps[1:], new, place)
        return Changed(machine, *_another_runtime(workload, changed, steps[1:]))
    if steps[0] == "let" and len(steps) == 2:
        return _in_both(machine, workload, steps[1], new, place)
    if len(steps) == 1:
        return _in_workload_let(machine, workload, steps[0], new, place)
    raise SpecError.of(place, f"'{path}' leads nowhere", f"did you mean 'machine.{path}' or 'workload.{path}'?")


def _another_runtime(before: Tree, workload: Tree, steps: list[str]) -> tuple[Tree, Warning | None]:
    """The workload; if its runtime is another now, without the numbers that its file sets for the one before.

    Returns:
        The workload, and a warning that names the numbers left out; other `--set` of the runtime stay.
    """
    runtime, earlier = workload.at(steps[:-1]), before.at(steps[:-1])
    if steps[-2:] != ["runtime", "use"] or runtime is None:
        return workload, None
    if runtime.text("use") == (None if earlier is None else earlier.text("use")):
        return workload, None
    left_out = [(key, tree) for key, tree in runtime.items() if tree.place.file != "--set"]
    for key, _ in left_out:
        runtime = runtime.without(key)
    if not left_out:
        return workload, None
    path, numbers = ".".join(["workload", *steps[:-1]]), ", ".join(f"{key}: {_shown(tree)}" for key, tree in left_out)
    keep = f"--set {path}.{left_out[0][0]}={_shown(left_out[0][1])!r} keeps it"
    text = f"{path}.use replaces the runtime as a whole, and with it {numbers} of the file: {keep}"
    return _in_tree(workload, steps[:-1], runtime, runtime.place), Warning("runtime-replaced", text)


def _shown(tree: Tree) -> str:
    value = tree.get("value") if tree.is_mapping else None
    return str((value or tree).plain())


def _value(path: str, value: object, source: Source) -> Tree:
    at = Place("--set", 1, len(path) + 2, source)
    if not isinstance(value, str):
        return tree_of(value, at)
    if not value.strip():
        raise SpecError.of(at, f"'{path}' is given no value")
    try:
        return _moved(read_text(value, "--set"), at)
    except SpecError as error:
        raise SpecError([Mistake(at, mistake.message, mistake.hint) for mistake in error.mistakes]) from None


def _moved(tree: Tree, place: Place) -> Tree:
    """A tree all of whose places are one: the value of an argument has no lines."""
    value: Any = tree.value
    if isinstance(value, dict):
        value = {key: _moved(each, place) for key, each in value.items()}
    elif isinstance(value, list):
        value = [_moved(each, place) for each in value]
    return Tree(value, place)


def _let_names(tree: Tree) -> tuple[str, ...]:
    let = tree.get("let")
    return tuple(name for name, _ in let.items()) if let else ()


def _with_let(tree: Tree, name: str, new: Tree) -> Tree:
    let = tree.get("let") or Tree({}, new.place)
    return tree.put("let", let.put(name, new))


def _in_workload_let(machine: Tree, workload: Tree, name: str, new: Tree, place: Place) -> Changed:
    if name in _let_names(workload):
        return Changed(machine, _with_let(workload, name, new))
    if name in _let_names(machine):
        raise SpecError.of(place, f"'{name}' is a parameter of the machine, not of the workload", f"write 'let.{name}'")
    raise SpecError.of(place, f"the workload has no parameter '{name}'", did_you_mean(name, _let_names(workload)))


def _in_both(machine: Tree, workload: Tree, name: str, new: Tree, place: Place) -> Changed:
    in_machine, in_workload = name in _let_names(machine), name in _let_names(workload)
    if not in_machine and not in_workload:
        candidates = (*_let_names(machine), *_let_names(workload))
        raise SpecError.of(place, f"neither file has a parameter '{name}'", did_you_mean(name, candidates))
    text = f"'let.{name}' is set in both the machine and the workload"
    return Changed(
        _with_let(machine, name, new) if in_machine else machine,
        _with_let(workload, name, new) if in_workload else workload,
        Warning("set-in-both", text) if in_machine and in_workload else None,
    )


def _in_machine(tree: Tree, steps: list[str], new: Tree, place: Place, base: Tree | None = None) -> Tree:
    """`tree` changed; `base` is the file that it uses, for the parts that are written there only."""
    if base is None and tree.get("use") is not None:
        base = readable(tree, "machine")
    first, rest = steps[0], steps[1:]
    parts_here = tree.get("parts") or Tree({}, new.place)
    inherited = (base.get("parts") if base else None) or Tree({}, new.place)
    if first in ("links", "parts", "let") and rest:
        if first == "let" and rest[0] not in (candidates := (*_let_names(tree), *(_let_names(base) if base else ()))):
            raise SpecError.of(place, f"the machine has no parameter '{rest[0]}'", did_you_mean(rest[0], candidates))
        if first == "parts":
            return _in_machine(tree, rest, new, place, base)
        if first == "links":
            return _in_links(tree, base, rest, new, place)
        return _with_let(tree, rest[0], new)
    part = parts_here.get(first)
    if part is None and inherited.get(first) is None and not (rest and (tree.text("use") or "").startswith("$")):
        if first == "collectives":
            return _in_tree(tree, steps, new, place)
        keys = tuple(key for key, _ in tree.items())
        if not rest and first in (*keys, *_PART_KEYS):
            return tree.put(first, new)
        parts = (*(key for key, _ in parts_here.items()), *(key for key, _ in inherited.items()))
        raise SpecError.of(place, f"the machine has no part '{first}'", did_you_mean(first, (*parts, "links", "let")))
    if not rest:
        raise SpecError.of(
            place, f"'{first}' is a part: which of its keys?", f"such as 'machine.{first}.count' or 'machine.{first}.use'"
        )
    below = part or Tree({}, new.place)
    beneath = inherited.get(first)
    if "machine" in (below.text("kind"), beneath.text("kind") if beneath else None) and not (
        len(rest) == 1 and rest[0] in _PART_KEYS
    ):
        inner = beneath if below.get("use") is None and beneath is not None else below
        changed = _in_machine(below, rest, new, place, readable(inner, "machine") or inner)
    else:
        changed = _in_tree(below, rest, new, place)
    return tree.put("parts", parts_here.put(first, changed))


def _in_links(tree: Tree, base: Tree | None, steps: list[str], new: Tree, place: Place) -> Tree:
    links = tree.get("links")
    over = links if links is not None and links.is_mapping else Tree({}, new.place)  # of links of a used machine, by name
    listed = links if links is not None and not links.is_mapping else (base.get("links") if base else None) or Tree([], new.place)
    name = steps[0]
    if listed.is_mapping:
        labels = [name_ for name_, _ in listed.items()]
    else:
        labels = [element.text("name") or "" for element in listed.elements()]
        kinds = [each.text("kind") or "" for each in listed.elements()]
        if name not in labels and kinds.count(name) == 1:
            labels = kinds
    labels += [name_ for name_, _ in over.items() if name_ not in labels]
    listed_here = links is not None and isinstance(links.value, list)
    by_place = listed_here and name.isascii() and name.isdigit() and len(name) < 9 and int(name) < len(labels)
    if labels.count(name) != 1 and not by_place:
        several = name in labels
        problem, hint = "several links" if several else "no link", did_you_mean(name, [each for each in labels if each])
        places = " or ".join(str(index) for index, label in enumerate(labels) if label == name)
        raise SpecError.of(
            place, f"the machine has {problem} '{name}'", f"say which: {places}" if several and listed_here else hint
        )
    if len(steps) < 2:
        raise SpecError.of(place, f"'{name}' is a link: which of its keys?", f"such as 'machine.links.{name}.use'")
    if links is not None and isinstance(links.value, list):
        index = int(name) if by_place else labels.index(name)
        changed = _in_tree(links.value[index], steps[1:], new, place)
        return tree.put("links", replace(links, value=[*links.value[:index], changed, *links.value[index + 1 :]]))
    return tree.put("links", over.put(name, _in_tree(over.get(name) or Tree({}, new.place), steps[1:], new, place)))


def _in_tree(tree: Tree, steps: list[str], new: Tree, place: Place, *, inherits: bool = False) -> Tree:
    """A key set; mappings on the way are made, elements of a list are found by index, name or what they are.

    inherits: a mapping around it has a `use:`, so what is missing here may be in the file that it uses.
    """
    inherits = inherits or tree.get("use") is not None
    first, rest = steps[0], steps[1:]
    if isinstance(tree.value, list):
        index = _element(tree.value, first, place)
        changed = _in_tree(tree.value[index], rest, new, place) if rest else new
        return replace(tree, value=[*tree.value[:index], changed, *tree.value[index + 1 :]])
    if not isinstance(tree.value, dict) and tree.value is not None:
        raise SpecError.of(place, f"{tree.what()} has no '{first}' in it")
    if not rest:
        below = tree.get(first)
        return (tree if tree.is_mapping else replace(tree, value={})).put(first, new if below is None else laid(below, new))
    below = tree.get(first)
    if below is None and tree.items() and len(steps) > 2 and not inherits:
        raise SpecError.of(place, f"there is no '{first}' here", did_you_mean(first, [key for key, _ in tree.items()]))
    return (tree if tree.is_mapping else replace(tree, value={})).put(
        first, _in_tree(below or Tree({}, new.place), rest, new, place, inherits=inherits)
    )


def _element(elements: list[Tree], step: str, place: Place) -> int:
    if step.isascii() and step.isdigit() and len(step) < 9:
        if int(step) < len(elements):
            return int(step)
        raise SpecError.of(place, f"there is no element {step}: the list has {len(elements)}, counted from 0")
    labels: list[set[str]] = []
    for element in elements:
        inner = next(iter(element.items()), None)  # an op is {copy: {...}}: known as copy, or by the name inside
        names = {element.text("name"), inner[0] if inner else None, inner[1].text("name") if inner else None}
        labels.append({label for label in names if label})
    matches = [index for index, element in enumerate(labels) if step in element]
    if len(matches) == 1:
        return matches[0]
    problem = f"several elements are '{step}': {', '.join(map(str, matches))}" if matches else f"no element is '{step}'"
    raise SpecError.of(place, problem, None if matches else did_you_mean(step, set().union(*labels)))
