"""`hwsim explore`: an interactive page for a run in the browser."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path

import click

from hwsim.cli import EXIT_FAILED
from hwsim.cli.arguments import MACHINE, WORKLOAD, settings_option


@click.command("explore")
@click.argument("machine", type=MACHINE, default="d2l-gpu-workstation")
@click.argument("workload", type=WORKLOAD, default="d2l/copy-overlap")
@settings_option
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default="a free one", help="Port on this computer.")
@click.option("--open/--no-open", "opening", default=True, help="Open the browser.")
@click.option("--allow", multiple=True, metavar="FOLDER", type=click.Path(path_type=Path, exists=True, file_okay=False),
              help="Folder whose files the page may use, besides the library; repeatable.")  # fmt: skip
@click.option("--state", default="", metavar="#STATE",
              help="State to open: the part after # of the address of another explorer.")  # fmt: skip
def command(
    machine: str, workload: str, settings: dict[str, str], port: int, opening: bool, allow: tuple[Path, ...], state: str
) -> None:
    """Open an interactive page for WORKLOAD on MACHINE: both files, the machine diagram, the timeline with its critical path,
    and a slider for each parameter. The server runs until Ctrl-C.

    Only this computer can reach the page: its address contains a secret.
    """
    from hwsim.explorer import fork_server

    fork_server.begin()  # while this process imports
    from hwsim.cli.errors import print_errors
    from hwsim.explorer.launcher import explore

    with print_errors():
        try:
            explorer = explore(machine, workload, set=settings, port=port, browser=False, allow=allow, state=state)
        except ModuleNotFoundError as missing:
            click.echo(str(missing), err=True)
            click.get_current_context().exit(EXIT_FAILED)
        except OSError as error:
            click.echo(f"port {port}: {os.strerror(error.errno or 0)}", err=True)
            click.get_current_context().exit(EXIT_FAILED)
    click.echo(f"{explorer.address}\nopen it in a browser of this computer; Ctrl-C ends it")
    if opening:
        webbrowser.open(explorer.address)
    explorer.wait()
