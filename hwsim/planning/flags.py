"""Questions from command-line options, as the tree of a plan file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hwsim.planning.axes import AUTO, SERVED
from hwsim.planning.question import FORMAT
from hwsim.spec import Mistake, Mistakes, Place, SourceText, SpecError, Tree, read, tree_of
from hwsim.spec.ranges import is_range
from hwsim.studies.grid import parse_values, scalar

TEXTS = ("prices", "provider", "failures", "rent", "period", "simulate")
LISTS = ("require", "also")


def question_from_flags(machine: str, workload: str, settings: Mapping[str, str], options: Mapping[str, Any]) -> Tree:
    """Return the question of a machine, a workload and options.

    Raises:
        SpecError: an option cannot be parsed.
    """
    start = tree_of({"hwsim": FORMAT, "machine": machine, "workload": workload}, Place("the command", 0, 0))
    return _with(start, settings, options)


def file_with_flags(file: str | Tree, settings: Mapping[str, str], options: Mapping[str, Any]) -> Tree:
    """Return the question of a file, whose keys the options override; `--vary` and `--require` add to the file's.

    Raises:
        SpecError: the file or an option cannot be parsed.
    """
    tree = file if isinstance(file, Tree) else read(file if file == "-" else Path(file))
    return _with(tree, settings, options)


def _with(tree: Tree, settings: Mapping[str, str], options: Mapping[str, Any]) -> Tree:
    if not tree.is_mapping:
        return tree
    for path, value in settings.items():
        place = Place("--set", 1, 1, SourceText("--set", f"{path}={value}"))
        before = tree.get("set") or tree_of({}, place)
        tree = tree.put("set", before.put(path, tree_of(_set(value, place), place)))
    for path, values in _varied(options["vary"]):
        before = tree.get("vary") or tree_of({}, values.place)
        tree = tree.put("vary", before.put(path, values))
    for name in LISTS:
        if options[name]:
            place = Place(f"--{name}", 0, 0)
            given = [*(tree.get(name) or tree_of([])).elements(), *(tree_of(text, place) for text in options[name])]
            tree = tree.put(name, Tree(given, (tree.get(name) or tree_of([], place)).place))
    for name, opposite in (("minimise", "maximise"), ("maximise", "minimise")):
        if options[name]:
            kept = tree if options[opposite] else tree.without(opposite)
            tree = kept.put(name, tree_of(list(options[name]), Place(f"--{name}", 0, 0)))
    for name in TEXTS:
        if options[name] is not None:
            tree = tree.put(name, tree_of(options[name], Place(f"--{name}", 0, 0)))
    return tree


def _set(value: str, place: Place) -> object:
    """Parse a value of `--set` as in a file."""
    if not value.strip():
        raise SpecError.of(place, "expected a value, got none", "PATH=VALUE: let.nodes=16")
    try:
        return value if is_range(value) else scalar(value)
    except SpecError as error:
        raise SpecError([Mistake(place, mistake.message, mistake.hint) for mistake in error.mistakes]) from None


def _varied(texts: Sequence[str]) -> Iterator[tuple[str, Tree]]:
    seen, mistakes = set[str](), Mistakes()
    for text in texts:
        path, equals, values = text.partition("=")
        place = Place("--vary", 1, len(path) + 2, SourceText("--vary", text))
        if not equals or not path.strip() or not values.strip():
            mistakes.add(Place("--vary", 1, 1, place.source), f"expected PATH=VALUES, got '{text:.60}'", "let.nodes=16..640")
        elif path in seen:
            mistakes.add(place, f"'{path}' is varied twice", "list all values after one =: let.nodes=16,32")
        else:
            seen.add(path)
            yield path.strip(), tree_of(_values(path, values.strip()), place)
    mistakes.raise_if_any()


def _values(path: str, values: str) -> Any:
    if values == "auto" and path.endswith((AUTO, f".{SERVED}")):
        return values
    if is_range(values) and ":" not in values:
        return values
    if values.startswith("{"):
        from hwsim.spec import read_text

        return read_text(values, "--vary")
    return list(parse_values(values, path))
