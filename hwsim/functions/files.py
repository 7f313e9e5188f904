"""Read and check a single file of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from hwsim import families_interface, links
from hwsim.failures import read_failures
from hwsim.machine import Machine, build
from hwsim.machine.classes import completed_file, defaulted_parts
from hwsim.machine.libraries.parser import read_libraries
from hwsim.machine.schema import LINK_KEYS
from hwsim.machine.scores import decode_scores
from hwsim.machine.strict import values_outside_library
from hwsim.models import Framework
from hwsim.models.library import describe_model, model_file, read_model
from hwsim.prepare import load_machine
from hwsim.results.expect import wanted_of
from hwsim.spec import Mistakes, SpecError, Tree, Warning, decode, did_you_mean, find, names, read, resolve, tree_of
from hwsim.spec.memo import memo_table
from hwsim.workload import Runtime, check_statements, read_workload, suspicions
from hwsim.workload.sources import Source, data_or_name, with_settings

LIBRARIES: Final = frozenset({"fabric", "mpi", "nccl", "overheads", "own"})  # kinds of communication libraries
SCHEMAS: Final[Mapping[str, str]] = {  # kind of file: module of its schema
    "failures": "failures", "machine": "machine.schema", "model": "models.library", "workload": "workload.schema",
    "part": "machine.schema", "plan": "planning.question", "prices": "costs.prices", "scores": "machine.scores",
    "study": "studies.file",
}  # fmt: skip


def check(source: Source) -> tuple[Warning, ...]:
    """Check a machine, workload or part, given by library name, path or content, and return its warnings.

    Raises:
        SpecError: all mistakes of the file.
    """
    return check_tree(any_tree(source))


def defaults_of(source: Source) -> tuple[str, ...]:
    """Return a line for each part and link that uses class defaults."""
    tree = any_tree(source)
    if tree.text("hwsim") not in ("machine/1", "part/1") or tree.text("kind") in ("runtime", "framework", *LIBRARIES):
        return ()
    lines = []
    for name, classes in dict(defaulted_parts(resolved(tree))).items():
        several = [f"{count} from {called}" for called, count in classes.items()]
        number = sum(classes.values())  # integers
        lines.append(f"{name}: {number} class default{'s' if number > 1 else ''}: {'; '.join(several)}")
    return tuple(lines)


def refuse_invented(source: Source) -> None:
    """Raise SpecError if a machine has parts or numbers outside the library; other files pass.

    Raises:
        SpecError: the parts and numbers that are not in the library.
    """
    tree = any_tree(source)
    if tree.text("hwsim") == "machine/1":
        mistakes = Mistakes()
        mistakes.extend(values_outside_library(resolve(tree, mistakes)))
        mistakes.raise_if_any()


def warnings_of(tree: Tree) -> tuple[Warning, ...]:
    """Return the warnings of a machine, workload or part; none if it has mistakes."""
    try:
        return check_tree(tree)
    except SpecError:
        return ()


def check_tree(tree: Tree) -> tuple[Warning, ...]:
    """Check a parsed file and return its warnings."""
    mistakes, warnings = Mistakes(), tuple[Warning, ...]()
    match tree.text("hwsim"):
        case "workload/1":
            loaded = read_workload(tree, mistakes)
            if loaded is not None:
                wanted_of(loaded.expect, mistakes, loaded.jobs or {}, families_interface.expectable_quantities(loaded))
                check_statements(loaded, mistakes)
            warnings = suspicions(loaded) if loaded else ()
        case "model/1":
            describe_model(read_model(tree))
        case "failures/1":
            read_failures(tree, mistakes)
        case "part/1":
            warnings = _check_part(tree, mistakes)
        case "study/1":
            from hwsim.studies.sweeps import check_study

            check_study(tree)
        case "plan/1":
            from hwsim.planning import read_question

            read_question(tree)
        case "scores/1":
            decode_scores(tree, mistakes)
        case "prices/1":
            from hwsim.costs.prices import check_prices

            check_prices(tree, mistakes)
        case _:
            built = build(tree, mistakes)
            warnings = built.warnings if built else ()
    mistakes.raise_if_any()
    return warnings


def any_tree(given: Source) -> Tree:
    """Return the content of a file of any kind, given by path, unique library name, text or data.

    Raises:
        SpecError: the file does not exist, or is not YAML.
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
        every = [name for listing in short.values() for name in listing]
        raise SpecError.of(None, f"there is no file '{source}' in the library", did_you_mean(source, every))
    return read(find("machine", source))


def resolved(tree: Tree) -> Tree:
    """Return a file with used files, parameters and class defaults filled in; each value has its source.

    Raises:
        SpecError: a used file or a parameter does not exist.
    """
    mistakes = Mistakes()
    kind, form = tree.text("kind") or "", (tree.text("hwsim") or "").partition("/")[0]
    if form not in ("machine", "workload", "model", "failures"):
        form = kind if kind in ("runtime", "framework") else "part"
    tree = resolve(tree, mistakes, kind=form)
    mistakes.raise_if_any()
    return completed_file(tree) if tree.text("hwsim") in ("machine/1", "part/1") else tree


def machine_with(source: str, settings: Mapping[str, str]) -> Machine:
    """Return a machine by path, name or content, with values set as by `--set machine.PATH=VALUE`.

    Raises:
        SpecError: the machine has mistakes.
    """
    if source == "-" or "\n" in source:
        return machine_of(source, settings)
    path = find("machine", source)
    kept: dict[Any, Machine] = earlier if (earlier := memo_table("machines by file")) is not None else {}
    key = str(path), tuple(settings.items())
    if key not in kept:
        kept[key] = machine_of(path, settings)
    return kept[key]


def machine_of(source: Source, settings: Mapping[str, object]) -> Machine:
    """Return a machine given as any source, with values set.

    Raises:
        SpecError: the machine has mistakes.
    """
    tree, _ = with_settings(source, {"hwsim": "workload/1"}, settings)
    return load_machine(tree)


def _check_part(tree: Tree, mistakes: Mistakes) -> tuple[Warning, ...]:
    """Check a part: a device as the only part of a machine, a link by its keys."""
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
    """Return the JSON Schema of a kind of file, for editors.

    Args:
        kind: "machine", "workload", "model", "part", "plan", "study", "prices" or "failures".

    Raises:
        ValueError: the kind is unknown.
    """
    if kind not in SCHEMAS:
        raise ValueError(f"unknown kind of file '{kind}'; known kinds: {', '.join(SCHEMAS)}")
    made: dict[str, Any] = getattr(import_module(f"hwsim.{SCHEMAS[kind]}"), f"{kind}_schema")()
    return made
