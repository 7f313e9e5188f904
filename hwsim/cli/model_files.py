"""`hwsim import huggingface FILE`: the file of a model of another tool, as a model of hwsim."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from hwsim.cli.arguments import FILE, refuse_replacing, refuse_unwritable, says, write_files
from hwsim.results.invariants import document, printed

OPTIONS: Final = (
    click.argument("file", type=click.Path(path_type=Path)),
    click.option("-o", "--output", type=FILE, metavar="FILE", help="Write the model: .yaml, with what each key came from."),
    click.option("--json", "as_json", is_flag=True, help="Print the model as JSON (hwsim: imported-model/1)."),
)


def _import(name: str, file: Path, output: Path | None, *, as_json: bool) -> None:
    refuse_unwritable(output, "--output", "model", (".yaml", ".yml"))
    from hwsim.cli.errors import in_words
    from hwsim.importers.configs import FORMATS, as_dict, lines, read_file, text_of

    refuse_replacing(output, "model of hwsim import", partial(says, FORMATS[name].words))
    with in_words():
        made, model = read_file(name, file)
    if output is not None:
        write_files([(output, partial(_write, text_of(name, file, made)))])
    click.echo(document(as_dict(name, made, model)) if as_json else printed("\n".join(lines(made, model)) + "\n"), nl=False)


def _write(text: str, path: Path) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _command(name: str, help_text: str) -> click.Command:
    def run(**options: Any) -> None:
        _import(name, **options)

    decorated: Callable[..., Any] = run
    for decorate in reversed(OPTIONS):
        decorated = decorate(decorated)
    return click.command(name, help=help_text)(decorated)


huggingface: Final = _command(
    "huggingface",
    "Read a config of Hugging Face (config.json): print the model, and write it.\n\n"
    "The `model:` of a workload, and MODEL of `hwsim estimate`, may name the config itself.",
)
