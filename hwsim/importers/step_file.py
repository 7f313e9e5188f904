"""A replay as a workload in hwsim's language."""

from __future__ import annotations

from pathlib import Path

from hwsim.graph.opgraph import OpGraph
from hwsim.importers.replay import Replay


def write(replay: Replay, path: Path, graph: OpGraph | None = None) -> Path:
    """Write a workload."""
    raise NotImplementedError
