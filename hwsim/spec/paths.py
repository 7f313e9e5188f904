"""Paths of `--set PATH=VALUE`, `--vary`, `--require` and Python's `set={}`.

algorithm                   a parameter of the workload            let.nodes                  a parameter of either file or both
machine.gpu.count           a key of a part                        machine.node.gpu.use       a key of a part inside a machine
machine.links.fabric.use    a key of a link                        workload.train.parallel.tp a key of the workload

Dots separate keys, except in a version at the end of a word: `machine.gpu.experts.vllm-0.12 fp8-block.padded`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final, NamedTuple

from hwsim.spec.mistakes import Mistake, Place, SourceText, SpecError, did_you_mean
from hwsim.spec.tree import Tree, tree_of
from hwsim.spec.use import readable_used_file, replacing_value
from hwsim.spec.warning import Warning
from hwsim.spec.yaml_parser import read_text

_DOT: Final = re.compile(r"(?<!-\d)(?<!-\d\d)\.|\.(?!\d)")  # the dot of a version is none: vllm-0.12
_PART_KEYS: Final = ("use", "kind", "count", "let", "name", "source", "ref")


class ChangedTrees(NamedTuple):
    """The trees of machine and workload after a change, with a warning about it."""

    machine: Tree
    workload: Tree
    warning: Warning | None = None


def apply_set(machine: Tree, workload: Tree, path: str, value: object) -> ChangedTrees:
    """Return both trees with one value changed, before parameters and `use:` are resolved.

    Args:
        path: path of the value.
        value: a text, which is parsed as YAML, or any other value, which is used unchanged.

    Raises:
        SpecError: the path does not exist, or the text is not YAML.
    """
    shown = f"{path}={value}" if isinstance(value, str) else path
    if any(letter in shown for letter in "\r\n\0"):
        raise SpecError.of(Place("--set", 0, 0), f"expected a single line, got {shown!r:.80}")
    source = SourceText("--set", shown)
    place = Place("--set", 1, 1, source)
    new = _value(path, value, source)
    steps = _DOT.split(path)
    if not all(steps) or path != path.strip():
        raise SpecError.of(place, f"'{path}' is not a path", "separate keys by dots: machine.gpu.count")
    if steps[0] == "machine" and len(steps) > 1:
        return ChangedTrees(_in_machine(machine, steps[1:], new, place), workload)
    if steps[0] == "workload" and len(steps) > 1:
        changed = _in_tree(workload, steps[1:], new, place)
        return ChangedTrees(machine, *_another_runtime(workload, changed, steps[1:]))
    if steps[0] == "let" and len(steps) == 2:
        return _in_both(machine, workload, steps[1], new, place)
    if len(steps) == 1:
        return _in_workload_let(machine, workload, steps[0], new, place)
    raise SpecError.of(place, f"the path '{path}' does not exist", f"did you mean 'machine.{path}' or 'workload.{path}'?")


def _another_runtime(before: Tree, workload: Tree, steps: list[str]) -> tuple[Tree, Warning | None]:
    """The workload, without the file's own values of its runtime if `--set` selects another runtime.

    Returns:
        The workload, and a warning that lists the removed values; other `--set` of the runtime remain.
    """
    runtime, earlier = workload.at(steps[:-1]), before.at(steps[:-1])
    if steps[-2:] != ["runtime", "use"] or runtime is None:
        return workload, None
    if runtime.text("use") == (None if earlier is None else earlier.text("use")):
        return workload, None
    removed = [(key, tree) for key, tree in runtime.items() if tree.place.file != "--set"]
    for key, _ in removed:
        runtime = runtime.without(key)
    if not removed:
        return workload, None
    path, numbers = ".".join(["workload", *steps[:-1]]), ", ".join(f"{key}: {_shown(tree)}" for key, tree in removed)
    keep = f"add --set {path}.{removed[0][0]}={_shown(removed[0][1])!r}"
    text = f"{path}.use replaces the entire runtime, including {numbers} of the file; to keep a value, {keep}"
    return _in_tree(workload, steps[:-1], runtime, runtime.place), Warning("runtime-replaced", text)


def _shown(tree: Tree) -> str:
    value = tree.get("value") if tree.is_mapping else None
    return str((value or tree).plain())


def _value(path: str, value: object, source: SourceText) -> Tree:
    place = Place("--set", 1, len(path) + 2, source)
    if not isinstance(value, str):
        return tree_of(value, place)
    if not value.strip():
        raise SpecError.of(place, f"'{path}' has no value")
    try:
        return _moved(read_text(value, "--set"), place)
    except SpecError as error:
        raise SpecError([Mistake(place, mistake.message, mistake.hint) for mistake in error.mistakes]) from None


def _moved(tree: Tree, place: Place) -> Tree:
    """The tree with one place for all nodes, because the value of an argument has no lines."""
    value: Any = tree.value
    if isinstance(value, dict):
        value = {key: _moved(child, place) for key, child in value.items()}
    elif isinstance(value, list):
        value = [_moved(child, place) for child in value]
    return Tree(value, place)


def _let_names(tree: Tree) -> tuple[str, ...]:
    let = tree.get("let")
    return tuple(name for name, _ in let.items()) if let else ()


def _with_let(tree: Tree, name: str, new: Tree) -> Tree:
    let = tree.get("let") or Tree({}, new.place)
    return tree.put("let", let.put(name, new))


def _in_workload_let(machine: Tree, workload: Tree, name: str, new: Tree, place: Place) -> ChangedTrees:
    if name in _let_names(workload):
        return ChangedTrees(machine, _with_let(workload, name, new))
    if name in _let_names(machine):
        raise SpecError.of(place, f"'{name}' is a parameter of the machine, not of the workload", f"write 'let.{name}'")
    raise SpecError.of(place, f"the workload has no parameter '{name}'", did_you_mean(name, _let_names(workload)))


def _in_both(machine: Tree, workload: Tree, name: str, new: Tree, place: Place) -> ChangedTrees:
    in_machine, in_workload = name in _let_names(machine), name in _let_names(workload)
    if not in_machine and not in_workload:
        candidates = (*_let_names(machine), *_let_names(workload))
        raise SpecError.of(place, f"neither file has a parameter '{name}'", did_you_mean(name, candidates))
    text = f"'let.{name}' is set in both the machine and the workload"
    return ChangedTrees(
        _with_let(machine, name, new) if in_machine else machine,
        _with_let(workload, name, new) if in_workload else workload,
        Warning("ambiguous-parameter", text) if in_machine and in_workload else None,
    )


def _in_machine(tree: Tree, steps: list[str], new: Tree, place: Place, base: Tree | None = None) -> Tree:
    """The changed tree of a machine; `base`: the file that it uses, for parts that only that file contains."""
    if base is None and tree.get("use") is not None:
        base = readable_used_file(tree, "machine")
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
        if first in ("collectives", "scores"):
            return _in_tree(tree, steps, new, place)
        keys = tuple(key for key, _ in tree.items())
        if not rest and first in (*keys, *_PART_KEYS):
            return tree.put(first, new)
        parts = (*(key for key, _ in parts_here.items()), *(key for key, _ in inherited.items()))
        raise SpecError.of(place, f"the machine has no part '{first}'", did_you_mean(first, (*parts, "links", "let")))
    if not rest:
        raise SpecError.of(place, f"'{first}' is a part: expected one of its keys", f"such as machine.{first}.count")
    below = part or Tree({}, new.place)
    beneath = inherited.get(first)
    if "machine" in (below.text("kind"), beneath.text("kind") if beneath else None) and not (
        len(rest) == 1 and rest[0] in _PART_KEYS
    ):
        inner = beneath if below.get("use") is None and beneath is not None else below
        changed = _in_machine(below, rest, new, place, readable_used_file(inner, "machine") or inner)
    else:
        changed = _in_tree(below, rest, new, place)
    return tree.put("parts", parts_here.put(first, changed))


def _in_links(tree: Tree, base: Tree | None, steps: list[str], new: Tree, place: Place) -> Tree:
    links = tree.get("links")
    over = links if links is not None and links.is_mapping else Tree({}, new.place)  # changes by name
    listed = links if links is not None and not links.is_mapping else (base.get("links") if base else None) or Tree([], new.place)
    name = steps[0]
    if listed.is_mapping:
        labels = list(dict(listed.items()))
    else:
        labels = [element.text("name") or "" for element in listed.elements()]
        kinds = [element.text("kind") or "" for element in listed.elements()]
        if name not in labels and kinds.count(name) == 1:
            labels = kinds
    labels += [label for label, _ in over.items() if label not in labels]
    listed_here = links is not None and isinstance(links.value, list)
    is_index = listed_here and name.isascii() and name.isdigit() and len(name) < 9 and int(name) < len(labels)
    if labels.count(name) != 1 and not is_index and not (tree.text("use") or "").startswith("$"):  # a parameter selects the file
        several = name in labels
        problem, hint = "several links" if several else "no link", did_you_mean(name, [label for label in labels if label])
        indices = " or ".join(str(index) for index, label in enumerate(labels) if label == name)
        hint = f"use the index: {indices}" if several and listed_here else hint
        raise SpecError.of(place, f"the machine has {problem} '{name}'", hint)
    if len(steps) < 2:
        raise SpecError.of(place, f"'{name}' is a link: expected one of its keys", f"such as machine.links.{name}.use")
    if links is not None and isinstance(links.value, list):
        index = int(name) if is_index else labels.index(name)
        changed = _in_tree(links.value[index], steps[1:], new, place)
        return tree.put("links", replace(links, value=[*links.value[:index], changed, *links.value[index + 1 :]]))
    return tree.put("links", over.put(name, _in_tree(over.get(name) or Tree({}, new.place), steps[1:], new, place)))


def _in_tree(tree: Tree, steps: list[str], new: Tree, place: Place, *, inherits: bool = False) -> Tree:
    """The tree with a key set; missing mappings are created, and elements of a list are selected by index, name or kind.

    Args:
        inherits: whether a surrounding mapping has a `use:`, so that missing keys may be in the used file.
    """
    inherits = inherits or tree.get("use") is not None
    first, rest = steps[0], steps[1:]
    if isinstance(tree.value, list):
        index = _element(tree.value, first, place)
        changed = _in_tree(tree.value[index], rest, new, place) if rest else new
        return replace(tree, value=[*tree.value[:index], changed, *tree.value[index + 1 :]])
    if not isinstance(tree.value, dict) and tree.value is not None:
        raise SpecError.of(place, f"{tree.what()} has no key '{first}'")
    if not rest:
        below = tree.get(first)
        return (tree if tree.is_mapping else replace(tree, value={})).put(
            first, new if below is None else replacing_value(below, new)
        )
    below = tree.get(first)
    if below is None and tree.items() and len(steps) > 2 and not inherits:
        raise SpecError.of(place, f"there is no key '{first}'", did_you_mean(first, [key for key, _ in tree.items()]))
    return (tree if tree.is_mapping else replace(tree, value={})).put(
        first, _in_tree(below or Tree({}, new.place), rest, new, place, inherits=inherits)
    )


def _element(elements: list[Tree], step: str, place: Place) -> int:
    if step.isascii() and step.isdigit() and len(step) < 9:
        if int(step) < len(elements):
            return int(step)
        raise SpecError.of(place, f"there is no element {step}: the list has {len(elements)} elements, counted from 0")
    labels: list[set[str]] = []
    for element in elements:
        inner = next(iter(element.items()), None)  # an op {copy: {name: x}} is selected by `copy` or `x`
        names = {element.text("name"), inner[0] if inner else None, inner[1].text("name") if inner else None}
        labels.append({label for label in names if label})
    matches = [index for index, element in enumerate(labels) if step in element]
    if len(matches) == 1:
        return matches[0]
    problem = f"several elements match '{step}': {', '.join(map(str, matches))}" if matches else f"no element matches '{step}'"
    raise SpecError.of(place, problem, None if matches else did_you_mean(step, set().union(*labels)))
