"""Export a run to another tool."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from hwsim.api import Progress, Run, Source, simulated


def export(
    tool: Literal["kineto", "chakra"],
    folder: str | Path,
    machine: Source | Run,
    workload: Source | None = None,
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the word of the command line)
    fold: Literal["auto", "always", "never"] = "auto",
    progress: Progress | None = None,
) -> tuple[Path, ...]:
    """Write a run in the format of another tool.

    Args:
        tool: target tool.
        folder: output folder, new or empty.
        machine: path, library name or content of a file; or a run, without a workload.
        workload: path, library name or content of a file.
        set: paths and values to change in the files.
        fold: whether identical ranks are written once: if there are many ("auto"), "always" or "never".
        progress: called with the numbers of finished and known ops.

    Returns:
        Paths of the written files.

    Raises:
        SpecError: the files have mistakes.
        FileExistsError: the folder is not empty.
        ValueError: the tool is unknown.
    """
    from hwsim.exporters.tools import TOOLS, files
    from hwsim.views.kit.file_output import write
    from hwsim.views.trace.run import run_of

    if tool not in TOOLS:
        raise ValueError(f"unknown tool '{tool}'; known tools: {', '.join(TOOLS)}")
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty")
    if isinstance(machine, Run):
        run = machine
    elif workload is None:
        raise TypeError("export() requires a machine and a workload, or a run")
    else:
        run = simulated(machine, workload, set=set, fold=fold, progress=progress, interval=False)
    exported = files(tool, run_of(run))
    folder.mkdir(parents=True, exist_ok=True)
    return tuple(write(folder / name, chunks) for name, chunks in exported.files.items())
