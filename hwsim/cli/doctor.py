"""`hwsim doctor`: print what is installed, and how to install what is missing."""

from __future__ import annotations

from typing import Final

import click

EXTRAS: Final = {"tables": "pandas", "explore": "starlette", "labs": "nbclient",
                 "gpu": "cupy", "torch": "torch"}  # fmt: skip
MENDED: Final = (
    "install a C++ compiler (gcc or clang), then hwsim again: pip install --force-reinstall --no-deps --no-cache-dir hwsim, "
    "or in a checkout pip install -e ."
)


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, as_json: bool) -> None:
    """Print what is installed: versions, the compiled core, extras; and how to install what is missing."""
    import json
    import platform
    from importlib.metadata import version
    from importlib.util import find_spec

    from hwsim.engine import core
    from hwsim.version import __version__

    found = core.found()
    why = found if isinstance(found, str) else None
    extras = {extra: find_spec(module) is not None for extra, module in EXTRAS.items()}
    if as_json:
        said = {
            "hwsim": __version__,
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "compiled_core": why is None,
        }
        click.echo(json.dumps({**said, "compiled_core_missing": why, "extras": extras}, indent=1))
        return
    click.echo(f"hwsim {__version__}, Python {platform.python_version()}, numpy {version('numpy')}, {platform.system()}")
    if why is None:
        click.echo("compiled core: loaded")
    else:
        click.echo(f"compiled core: none, so that large runs take up to ten times as long\n  {why}\n  hint: {MENDED}")
    missing = ",".join(extra for extra, is_there in extras.items() if not is_there)
    click.echo(f"extras: {', '.join(extra for extra, is_there in extras.items() if is_there) or 'none'}")
    if missing:
        click.echo(f"  not installed, and needed by no simulation: pip install 'hwsim[{missing}]'")
