"""`hwsim import huggingface FILE`: convert a Hugging Face config to a model of hwsim."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import click

from hwsim.cli.arguments import FILE, refuse_replacing, refuse_unwritable, says, write_files
from hwsim.results.invariants import checked_text, document

WORDS: Final = "config of Hugging Face"  # text near the start of a file written by this command


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Write the model file (.yaml), with the source of each key.")
@click.option("--json", "as_json", is_flag=True, help="Print the model as JSON (hwsim: imported-model/1).")
def huggingface(file: Path, output: Path | None, *, as_json: bool) -> None:
    """Read a Hugging Face config (config.json): print the model, and write it.

    The `model:` of a workload, and MODEL of `hwsim estimate`, may name the config itself.
    """
    refuse_unwritable(output, "--output", "model", (".yaml", ".yml"))
    from hwsim.cli.errors import print_errors
    from hwsim.importers.configs import as_dict, lines
    from hwsim.models.configs import as_tree, model_yaml, read_config
    from hwsim.models.library import read_model
    from hwsim.views.kit.file_output import write

    refuse_replacing(output, "model of hwsim import", partial(says, WORDS))
    with print_errors():
        made = read_config(file)
        model = read_model(as_tree(made))
    write_files([(output, lambda path: write(path, [model_yaml(made, f"{WORDS}, {file.name}").encode()]))])
    click.echo(document(as_dict(made, model)) if as_json else checked_text("\n".join(lines(made, model)) + "\n"), nl=False)
