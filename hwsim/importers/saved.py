"""An import as a file: its op graph, whose times are the recorded or predicted ones, and how many steps it has."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from hwsim.graph.files import npz, refuse_long
from hwsim.graph.files.tables import mistake
from hwsim.graph.opgraph import OpGraph
from hwsim.importers.replay import Replay
from hwsim.importers.steps import count

_STEPS: Final = "replay.steps"  # an array of one number beside the graph (`npz.BESIDE`)


def save(replay: Replay, path: Path, graph: OpGraph | None = None) -> Path:
    """Write a replay; graph: the one to write instead of its own. The path, which ends in .npz."""
    graph = replay.graph if graph is None else graph
    refuse_long(graph, path)
    npz.save(graph, path, {_STEPS: np.array([count(replay.recording)])})
    return path


def steps_in(path: Path) -> int:
    """The number of steps in an import.

    Raises:
        SpecError: the archive holds no import, or a damaged one.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return int(archive[_STEPS][0])
    except Exception as error:  # whatever a damaged archive raises
        raise mistake(str(path), f"this is not an import: {error}", "hwsim import ... -o step.npz writes one") from error
