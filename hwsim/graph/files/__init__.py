"""Op graphs as files, for graphs that no YAML file can hold: numpy's npz, or Parquet (extra [tables]).

hwsim.save_graph(graph, "big.npz")
hwsim.simulate("machine.yaml", hwsim.load_graph("big.npz"))        # or its path; or on the command line
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hwsim import ticks
from hwsim.graph.files import npz, parquet
from hwsim.graph.files.checks import problems
from hwsim.graph.files.tables import COLUMNS, mistake
from hwsim.graph.opgraph import OpGraph

__all__ = ["COLUMNS", "FORMATS", "load_graph", "save_graph"]

FORMATS: Final = {".npz": npz, ".parquet": parquet}  # how a name ends, and who reads and writes it


def save_graph(graph: OpGraph, path: str | Path) -> Path:
    """Write a graph; the path, which ends in .npz or .parquet.

    Raises:
        SpecError: an op whose own time does not fit the file's 64 bits.
        ValueError: another ending, or a column that has no numbers of the machine.
        OSError: it cannot be written.
        ModuleNotFoundError: Parquet, and there is no pyarrow.
    """
    path = Path(path)
    if path.suffix not in FORMATS:
        raise ValueError(f"an op graph is written as {' or '.join(FORMATS)}, not as '{path.name}'")
    for number, block in enumerate(graph.blocks):
        if block.time.dtype == object:
            longest = int(block.time.max()) / ticks.FEMTO
            hint = "files of op graphs hold own times up to 9223 s (2.56 h): simulate the workload itself"
            raise mistake(str(path), f"'{number}.time' has an op that takes {longest:.6g} s", hint)
    FORMATS[path.suffix].save(graph, path)
    return path


def load_graph(path: str | Path) -> OpGraph:
    """Read a graph.

    Raises:
        SpecError: there is no such file, it is damaged, or what it says is no graph.
        ModuleNotFoundError: Parquet, and there is no pyarrow.
    """
    name = str(path)
    try:
        graph: OpGraph = FORMATS.get(Path(path).suffix, npz).load(Path(path), name)
    except FileNotFoundError:
        raise mistake(name, "there is no such file") from None
    for problem in problems(graph):
        raise mistake(name, problem, "the columns are described in hwsim.graph.opgraph.Block")
    return graph
