"""Files of any kind, for the commands that look at one alone."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from hwsim import doors, links
from hwsim.failures import read_failures
from hwsim.machine import Machine, build
from hwsim.machine.classes import completed_file, filled_in
from hwsim.machine.libraries.reading import read_libraries
from hwsim.machine.schema import LINK_KEYS
from hwsim.machine.strict import invented
from hwsim.models import Framework
from hwsim.models.library import described, model_file, read_model
from hwsim.prepare import load_machine
from hwsim.results.expect import wanted_of
from hwsim.spec import Mistakes, SpecError, Tree, Warning, decode, did_you_mean, find, names, read, resolve, tree_of
from hwsim.spec.shelf import shared_by
from hwsim.workload import Runtime, check_statements, read_workload, suspicions
from hwsim.workload.sources import Source, data_or_name, with_settings

LIBRARIES: Final = frozenset({"mpi", "nccl", "overheads", "own"})  # kinds of collective libraries
SCHEMAS: Final[Mapping[str, str]] = {  # kind of a file: the module that has its schema
    "failures": "failures", "machine": "machine.schema", "model": "models.library", "workload": "workload.schema",
    "part": "machine.schema", "plan": "planning.question", "prices": "costs.prices", "study": "studies.file",
}  # fmt: skip


def check(source: Source) -> tuple[Warning, ...]:
    """Read a machine, workload or part of the library, of a file, of a text or of data; its warnings.

    Raises:
        SpecError: all its mistakes.
    """
    return check_tree(any_tree(source))


def defaults_of(source: Source) -> tuple[str, ...]:
    """A line for each part and link of a machine or part that has numbers from its class."""
    tree = any_tree(source)
    if tree.text("hwsim") not in ("machine/1", "part/1") or tree.text("kind") in ("runtime", "framework", *LIBRARIES):
        return ()
    lines = []
    for name, classes in dict(filled_in(resolved(tree))).items():
        several = [f"{count} of {called}" for called, count in classes.items()]
        number = sum(classes.values())  # integers
        lines.append(f"{name}: {number} number{'s' if number > 1 else ''} filled in from its class: {', '.join(several)}")
    return tuple(lines)


def refuse_invented(source: Source) -> None:
    """Refuse a machine that is not of the library's parts alone; files of other formats pass.

    Raises:
        SpecError: its parts and numbers that the library does not have.
    """
    tree = any_tree(source)
    if tree.text("hwsim") == "machine/1":
        mistakes = Mistakes()
        mistakes.extend(invented(resolve(tree, mistakes)))
        mistakes.raise_if_any()


def warnings_of(tree: Tree) -> tuple[Warning, ...]:
    """Warnings of a machine, workload or part; none if it has mistakes."""
    try:
        return check_tree(tree)
    except SpecError:
        return ()


def check_tree(tree: Tree) -> tuple[Warning, ...]:
    """As `check`, of content that was read."""
    mistakes, warnings = Mistakes(), tuple[Warning, ...]()
    match tree.text("hwsim"):
        case "workload/1":
            loaded = read_workload(tree, mistakes)
            if loaded is not None:
                wanted_of(loaded.expect, mistakes, loaded.jobs or {}, doors.wanted_of(loaded))
                check_statements(loaded, mistakes)
            warnings = suspicions(loaded) if loaded else ()
        case "model/1":
            described(read_model(tree))
        case "failures/1":
            read_failures(tree, mistakes)
        case "part/1":
            warnings = _check_part(tree, mistakes)
        case "study/1":
            from hwsim.studies.sweeping import check_study

            check_study(tree)
        case "plan/1":
            from hwsim.planning import read_question

            read_question(tree)
        case "prices/1":
            from hwsim.costs.prices import check_prices

            check_prices(tree, mistakes)
        case _:
            built = build(tree, mistakes)
            warnings = built.warnings if built else ()
    mistakes.raise_if_any()
    return warnings


def any_tree(given: Source) -> Tree:
    """The content of a file of any kind: by path, by a name that the library has once, as text or as data.

    Raises:
        SpecError: no such file, or not YAML.
    """
    source = data_or_name(given)
    if isinstance(source, Tree):
        return source
    if isinstance(source, Path):
        return model_file(source) if source.suffix == ".json" else read(source)
    if source == "-" or "\n" in source:
        return read(source)
    if source.endswith(".json"):
        return model_file(find("model", source))
    if source.endswith((".yaml", ".yml")):
        return read(find("machine", source))
    kinds = ("machine", "workload", "part", "model", "runtime", "framework", "failures", "prices")
    short = {kind: [name.rpartition("/")[2] if kind == "part" else name for name in names(kind)] for kind in kinds}
    for kind in kinds:
        if source in names(kind) or source in short[kind]:
            return read(find(kind, source))
    if "/" not in source:
        every = [name for each in short.values() for name in each]
        raise SpecError.of(None, f"there is no file '{source}' in the library", did_you_mean(source, every))
    return read(find("machine", source))


def resolved(tree: Tree) -> Tree:
    """A file with the files that it uses, its parameters and what its classes fill in; each value has its source.

    Raises:
        SpecError: what cannot be found.
    """
    mistakes = Mistakes()
    kind, form = tree.text("kind") or "", (tree.text("hwsim") or "").partition("/")[0]
    if form not in ("machine", "workload", "model", "failures"):
        form = kind if kind in ("runtime", "framework") else "part"
    tree = resolve(tree, mistakes, kind=form)
    mistakes.raise_if_any()
    return completed_file(tree) if tree.text("hwsim") in ("machine/1", "part/1") else tree


def machine_with(source: str, settings: Mapping[str, str]) -> Machine:
    """A machine by path, name or content, with values set as by `--set machine.PATH=VALUE`.

    Raises:
        SpecError: its mistakes.
    """
    if source == "-" or "\n" in source:
        return machine_of(source, settings)
    path = find("machine", source)
    kept: dict[Any, Machine] = earlier if (earlier := shared_by("machines by file")) is not None else {}
    key = str(path), tuple(settings.items())
    if key not in kept:
        kept[key] = machine_of(path, settings)
    return kept[key]


def machine_of(source: Source, settings: Mapping[str, object]) -> Machine:
    """A machine in any form that a file may be given in, with values set.

    Raises:
        SpecError: its mistakes.
    """
    tree, _ = with_settings(source, {"hwsim": "workload/1"}, settings)
    return load_machine(tree)


def _check_part(tree: Tree, mistakes: Mistakes) -> tuple[Warning, ...]:
    """A device alone in a machine; a link by its keys."""
    kind = tree.text("kind")
    if kind is not None and kind in links.KINDS:
        decode(resolve(tree, mistakes, kind=kind), links.KINDS[kind], mistakes, ignore=LINK_KEYS | {"hwsim"}, sourced=True)
        return ()
    if kind == "framework":
        ignore = ("hwsim", "kind", "name", "notes")
        decode(resolve(tree, mistakes, kind=kind), Framework, mistakes, ignore=ignore, sourced=True, sure=True)
        return ()
    if kind == "runtime":
        decode(resolve(tree, mistakes, kind=kind), Runtime, mistakes, ignore=("hwsim",))
        return ()
    if kind in LIBRARIES:
        read_libraries(resolve(tree, mistakes, kind=kind).without("hwsim"), mistakes)
        return ()
    machine = tree_of({"hwsim": "machine/1", "parts": {"part": tree.without("hwsim")}}, tree.place)
    built = build(machine, mistakes)
    return built.warnings if built else ()


def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of a kind of file, for editors.

    Args:
        kind: "machine", "workload", "model", "part", "plan", "study", "prices" or "failures".

    Raises:
        ValueError: no such kind.
    """
    if kind not in SCHEMAS:
        raise ValueError(f"there is no kind of file '{kind}'; there are {', '.join(SCHEMAS)}")
    made: dict[str, Any] = getattr(import_module(f"hwsim.{SCHEMAS[kind]}"), f"{kind}_schema")()
    return made
