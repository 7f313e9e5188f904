"""Save an import as a file: its op graph with recorded or predicted times, and its number of steps."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from hwsim.graph.files import npz, refuse_long
from hwsim.graph.files.tables import mistake
from hwsim.graph.opgraph import OpGraph
from hwsim.importers.replay import RecordingReplay
from hwsim.importers.steps import count

_STEPS: Final = "replay.steps"  # an array of one number beside the graph (`npz.BESIDE`)


def save(replay: RecordingReplay, path: Path, graph: OpGraph | None = None) -> Path:
    """Write a replay to a path that ends in .npz, and return the path.

    Args:
        graph: op graph to write; default: that of the replay.
    """
    graph = replay.graph if graph is None else graph
    refuse_long(graph, path)
    npz.save(graph, path, {_STEPS: np.array([count(replay.recording)])})
    return path


def steps_in(path: Path) -> int:
    """Return the number of steps in a saved import.

    Raises:
        SpecError: the file is damaged or no import.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return int(archive[_STEPS][0])
    except Exception as error:  # whatever a damaged archive raises
        raise mistake(str(path), f"this is not an import: {error}", "write one with `hwsim import ... -o step.npz`") from error
