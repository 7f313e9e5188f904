"""Templates of a machine file and a workload file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).with_name("templates")
FILES: Final = ("machine.yaml", "workload.yaml")
TEMPLATES: Final = ("program", "service", "served-model")


def new(folder: str | Path = ".", template: str = "program") -> tuple[Path, ...]:
    """Write machine.yaml and workload.yaml into a folder, which is created if necessary.

    Args:
        folder: output folder.
        template: "program" (on GPUs), "service" (a web server and its database) or "served-model" (a language model).

    Raises:
        FileExistsError: one of the files exists; nothing is written.
        ValueError: the template is unknown.
    """
    from hwsim.views.kit.file_output import write

    if template not in TEMPLATES:
        raise ValueError(f"unknown template '{template}'; known templates: {', '.join(TEMPLATES)}")
    folder = Path(folder)
    for name in FILES:
        if (folder / name).exists():
            raise FileExistsError(f"{folder / name} exists already")
    folder.mkdir(parents=True, exist_ok=True)
    return tuple(write(folder / name, [(ROOT / template / name).read_bytes()]) for name in FILES)
