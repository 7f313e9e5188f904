"""Op graphs as numpy's npz, an array per column.

An archive has the columns of block n as `n.label`, `n.cost`, `n.size`, `n.time`, `n.queue`, `n.insert`, `n.take`, `n.give`
(an entry per op, see `hwsim.graph.opgraph.Block`) and `n.edges` (rows from, to, lag). It also has `ties`, and `tables`: labels,
costs, capacities, queues, pools and buffers as JSON in UTF-8. Indices are kept in 32 bits: 40 B an op and 12 B an edge.
Arrays of any other name are read with them, so that an archive with one that is damaged is refused.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from hwsim.formats import format_quantity
from hwsim.graph.files.tables import COLUMNS, MADE_BY, mistake, read, written
from hwsim.graph.opgraph import Block, OpGraph
from hwsim.spec import SpecError
from hwsim.spec.whole import replaced

_NARROW: Final = np.iinfo(np.int32)
_ARCHIVE: Final = b"PK"
LARGE: Final = 256_000_000  # bytes, up to which any archive is unpacked
PACKED: Final = 50  # times the size of the file; hwsim does not pack, and columns of graphs pack to a tenth
BESIDE: Final = "replay."  # first word of the names of arrays that importers keep with a graph


def save(graph: OpGraph, path: Path, more: Mapping[str, NDArray[Any]] | None = None) -> None:
    """Write a graph, uncompressed; more: arrays to keep with it (`BESIDE`), which `load` skips."""
    arrays: dict[str, Any] = {"tables": np.frombuffer(written(graph), np.uint8), "ties": graph.ties, **(more or {})}
    for number, block in enumerate(graph.blocks):
        for column in (*COLUMNS, "edges"):
            arrays[f"{number}.{column}"] = narrow(getattr(block, column))
    with replaced(path) as beside, beside.open("wb") as file:
        np.savez(file, **arrays)


def narrow(column: NDArray[Any]) -> NDArray[Any]:
    """The same in 32 bits, where all of it fits."""
    fits = column.dtype.kind in "iu" and column.min(initial=0) >= _NARROW.min and column.max(initial=0) <= _NARROW.max
    return column.astype(np.int32) if fits else column


def load(path: Path, name: str) -> OpGraph:
    """Read a graph, not yet checked.

    Raises:
        SpecError: it is damaged, or no graph.
        FileNotFoundError: there is none.
    """
    try:
        with path.open("rb") as file:
            if file.read(len(_ARCHIVE)) != _ARCHIVE:
                raise mistake(name, "this is not an archive of arrays", MADE_BY)
            file.seek(0)
            _refuse_bomb(file, name)
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                return _graph({key: archive[key] for key in archive.files if not key.startswith(BESIDE)}, name)
    except FileNotFoundError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, MemoryError) as error:
        if isinstance(error, SpecError):
            raise
        raise mistake(name, f"this is not an op graph, or it is damaged: {error}", MADE_BY) from error


def _refuse_bomb(file: BinaryIO, name: str) -> None:
    """Raise if an archive says that it unpacks to far more than itself: arrays are made before they are filled."""
    with zipfile.ZipFile(file) as archive:
        unpacked = sum(each.file_size for each in archive.infolist())  # integers
    if unpacked > max(LARGE, PACKED * file.seek(0, 2)):
        raise mistake(name, f"it unpacks to {format_quantity(unpacked, 'B')}, more than {PACKED} times its size", MADE_BY)


def _graph(arrays: Mapping[str, NDArray[Any]], file: str) -> OpGraph:
    if "tables" not in arrays:
        raise mistake(file, "this archive has no 'tables'", MADE_BY)
    if "ties" not in arrays:
        raise mistake(file, "'ties' is missing", MADE_BY)

    def block(number: int, times: int) -> Block:
        columns: dict[str, Any] = {column: arrays[f"{number}.{column}"] for column in (*COLUMNS, "edges")}
        return Block(**columns, times=times)

    return read(arrays["tables"].tobytes(), arrays["ties"], block, file)
