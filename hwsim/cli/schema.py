"""`hwsim schema`: the JSON Schema of a kind of file."""

from __future__ import annotations

import click


@click.command("schema")
@click.argument(
    "kind", type=click.Choice(["machine", "workload", "model", "part", "failures", "prices", "scores", "study", "plan"])
)
def command(kind: str) -> None:
    """Print the JSON Schema of a KIND of file.

    Editors with a YAML language server use it to complete and check while you type:
    `hwsim schema machine > machine.schema.json`, and as the first line of the file
    `# yaml-language-server: $schema=machine.schema.json`.
    """
    import json

    from hwsim.functions.files import schema

    click.echo(json.dumps(schema(kind), indent=1, sort_keys=True, ensure_ascii=False))
