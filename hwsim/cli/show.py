"""`hwsim show`: what a name stands for, each number with its source; or the ops a workload comes to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hwsim.cli.arguments import MACHINE, LibraryName, settings_option
from hwsim.cli.views import own_options, show
from hwsim.views import view

if TYPE_CHECKING:
    from hwsim.spec import Tree

TOPOLOGY: Final = view("topology")


@click.command("show")
@click.argument("name", metavar="[NAME|FILE]", default="", type=LibraryName("machine"))
@click.option("--lowered", is_flag=True, help="The ops that a workload comes to, on --machine (default: the one it expects).")
@click.option("--machine", type=MACHINE, help="With --lowered: the machine.")
@click.option(
    "--topology",
    "figure",
    is_flag=False,
    flag_value="",
    metavar="[FILE]",
    help="How a machine hangs together: links, bisection bandwidth, distances; drawn into FILE (.png, .svg or .pdf).",
)
@own_options(TOPOLOGY)
@click.option("--json", "as_json", is_flag=True, help="With --topology: print it as JSON (hwsim: topology/1).")
@settings_option
def command(
    name: str, lowered: bool, machine: str | None, figure: str | None, of: str, as_json: bool, settings: dict[str, str]
) -> None:
    """Print a machine, part or workload: everything it uses filled in, each number with its source.

    Without a name: what the library has.
    """
    if figure is not None:
        if lowered or machine:
            raise click.UsageError("--topology is of a machine alone: leave out --lowered and --machine")
        if not name:  # `hwsim show --topology MACHINE`: click takes the name for a file
            name, figure = figure, ""
        if not name:
            raise click.UsageError("--topology needs the name of a machine")
        plot = Path(figure) if figure else None
        show(TOPOLOGY, (name, None), settings, {"of": of}, as_json=as_json, plot=plot, plot_option="--topology")
        return
    if of or as_json:
        raise click.UsageError("--of and --json go with --topology")
    if not name:
        click.echo("\n".join(_library()))
        return
    if not lowered and (machine or settings):
        raise click.UsageError("--machine and --set go with --lowered")
    from hwsim.cli.errors import in_words
    from hwsim.cli.files import any_tree, resolved, warnings_of
    from hwsim.views.kit import warned

    with in_words():
        tree = any_tree(name)
        if not lowered:
            click.echo("\n".join(_lines(resolved(tree), "")))
            for warning in warnings_of(tree):  # what is printed is a file: nothing else may stand in it
                click.echo(f"warning: {warning}", err=True)
            if tree.text("hwsim") == "model/1":
                from hwsim.models.library import described, read_model

                click.echo("\n".join(f"# {line}" for line in described(read_model(tree))))
            return
        expect = tree.get("expect")
        machine = machine or (expect.text("machine") if expect else None)
        if machine is None:
            raise click.UsageError("the workload names no machine: say which with --machine")
        from hwsim import api
        from hwsim.workload.describe import describe

        prepared = api.prepare(machine, tree, set=settings)
        click.echo("\n".join([describe(prepared.graph), *(str(each) for each in prepared.services)]))
        click.echo(warned.text(prepared.warnings), nl=False)


def _library() -> Iterator[str]:
    from hwsim.spec import names

    for kind in ("machine", "workload", "model", "part", "runtime", "framework", "failures"):
        yield f"{kind.removesuffix('s')}s:"
        yield from (f"  {name}" for name in names(kind))


def _lines(tree: Tree, indent: str) -> Iterator[str]:
    """YAML, with the source of a number as a comment."""
    for key, value in sorted(tree.items(), key=lambda item: item[0] != "hwsim"):  # the first line of a file comes first
        if key in {"source", "ref"} and indent:
            continue  # in the comments
        if value.is_mapping:
            value = value.get("value") or value
        if _is_default(value):  # as a comment: read again, the printed file has it from its class again
            yield from (f"{indent}# {line}" for line in _with_source(key, value, ""))
        elif value.is_mapping and value.items():
            yield f"{indent}{_key(key)}:"
            yield from _lines(value, indent + "  ")
        elif value.is_list and any(element.is_mapping for element in value.elements()):
            yield f"{indent}{_key(key)}:"
            for element in value.elements():
                yield from _element(element, indent + "  ")
        else:
            yield from _with_source(key, value, indent)


def _with_source(key: str, value: Tree, indent: str) -> Iterator[str]:
    """A key with its value; of a mapping that is filled in, all that it holds."""
    if value.is_mapping and value.items():
        yield f"{indent}{_key(key)}:"
        for inner, place in value.items():
            yield from _with_source(inner, place, indent + "  ")
    else:
        origin = f"  # {value.origin}" if value.origin is not None and _is_number(value) else ""
        yield f"{indent}{_key(key)}: {_rounded(value) if _is_default(value) else _flow(value)}{origin}"


def _key(text: str) -> str:
    """A key; in quotes where YAML would take it for a number."""
    return f'"{text}"' if text[:1].isdigit() else text


def _rounded(tree: Tree) -> str:
    """A number that was worked out, to the digits that are read."""
    from hwsim.formats import precise
    from hwsim.units import Quantity

    return precise(tree.value.value, tree.value.dimension.unit) if isinstance(tree.value, Quantity) else _flow(tree)


def _is_default(tree: Tree) -> bool:
    """Whether a value, or all that a mapping holds, is filled in from a class."""
    if tree.is_mapping:
        return bool(tree.items()) and all(_is_default(each) for _, each in tree.items())
    return tree.origin is not None and tree.origin.kind == "default"


def _element(tree: Tree, indent: str) -> Iterator[str]:
    """An element of a list: on one line, or on several if it holds numbers whose sources are known."""
    inside = list(_lines(tree, indent + "  ")) if tree.is_mapping else []
    if any("  # " in line for line in inside):
        yield f"{indent}- {inside[0].lstrip()}"
        yield from inside[1:]
    else:
        yield f"{indent}- {_flow(tree)}"


def _flow(tree: Tree) -> str:
    """A value on one line."""
    if tree.is_mapping:
        return "{" + ", ".join(f"{_key(key)}: {_flow(value)}" for key, value in tree.items()) + "}"
    if tree.is_list:
        return "[" + ", ".join(map(_flow, tree.elements())) + "]"
    return _scalar(tree.value)


def _scalar(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str() if not _plain(value):
            import json

            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)


def _plain(text: str) -> bool:
    """Whether a text needs no quotes in YAML, also inside braces."""
    return bool(text) and text == text.strip() and not set(text) & set("#:{}[],&*!|>'\"%@`\n") and text[0] not in "-?"


def _is_number(tree: Tree) -> bool:
    from hwsim.units import UnitError, parse

    if isinstance(tree.value, bool) or not str(tree.value)[:1].isdigit():
        return False
    try:
        parse(str(tree.value))
    except UnitError:
        return False
    return True
