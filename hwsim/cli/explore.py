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
@click.option("--save", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.html",
              help="Save a page that needs no server, instead of opening one.")  # fmt: skip
@click.option("--slider", "paths", multiple=True, metavar="PATH",
              help="Number with a slider in the saved page, up to three (default: those with the strongest effect).")  # fmt: skip
@click.option("--predict", is_flag=True, help="Hide the answer of the saved page until the reader has predicted it.")
def command(
    machine: str,
    workload: str,
    settings: dict[str, str],
    port: int,
    opening: bool,
    allow: tuple[Path, ...],
    state: str,
    save: Path | None,
    paths: tuple[str, ...],
    predict: bool,
) -> None:
    """Open an interactive page for WORKLOAD on MACHINE: both files, the machine diagram, the timeline with its critical path,
    and a slider for each parameter. The server runs until Ctrl-C.

    Only this computer can reach the page: its address contains a secret.
    """
    if save is not None:
        _save(save, machine, workload, settings, paths, allow, predict)
        return
    if paths or predict:
        raise click.UsageError("--slider and --predict belong to --save FILE.html")
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


def _save(
    file: Path,
    machine: str,
    workload: str,
    settings: dict[str, str],
    paths: tuple[str, ...],
    allow: tuple[Path, ...],
    predict: bool,
) -> None:
    if len(paths) > 3:
        raise click.UsageError("--slider: a saved page has at most three")
    from hwsim.cli.errors import print_errors
    from hwsim.explorer.offline import offline_content
    from hwsim.explorer.saved import contents, page

    with print_errors():
        content = offline_content(machine, workload, settings=settings, paths=paths, allow=allow, predict=predict)
        text = page(content)
        file.write_text(text, encoding="utf-8", newline="\n")
    moved = ", ".join(axis["label"] for axis in content["grid"]["axes"])
    click.echo(f"{file}: {contents(content)}, {len(text) / 1024:,.0f} KiB; sliders: {moved}")
