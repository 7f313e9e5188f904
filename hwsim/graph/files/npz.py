"""Reader and writer of op graphs as NumPy npz archives, with one array per column.

The columns of block n are `n.label`, `n.cost`, `n.size`, `n.time`, `n.queue`, `n.insert`, `n.take`, `n.give` (one entry per
op, see `hwsim.graph.opgraph.Block`) and `n.edges` (rows from, to, lag). The archive also contains `ties`, and `tables`: labels,
costs, capacities, queues, pools and buffers as JSON in UTF-8. Indices have 32 bits: 40 B per op and 12 B per edge.
Other arrays are read too, so that a damaged array in an archive is detected.
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
from hwsim.spec.atomic_file import replaced_atomically

_NARROW: Final = np.iinfo(np.int32)
_ARCHIVE: Final = b"PK"
LARGE: Final = 256_000_000  # bytes up to which any archive is decompressed
PACKED: Final = 50  # maximum compression ratio of a large archive; columns of graphs compress to a tenth
BESIDE: Final = "replay."  # prefix of arrays that importers store with a graph


def save(graph: OpGraph, path: Path, more: Mapping[str, NDArray[Any]] | None = None) -> None:
    """Write a graph without compression; `more`: additional arrays (`BESIDE`), which `load` skips."""
    arrays: dict[str, Any] = {"tables": np.frombuffer(written(graph), np.uint8), "ties": graph.ties, **(more or {})}
    for number, block in enumerate(graph.blocks):
        for column in (*COLUMNS, "edges"):
            arrays[f"{number}.{column}"] = narrow(getattr(block, column))
    with replaced_atomically(path) as beside, beside.open("wb") as file:
        np.savez(file, **arrays)


def narrow(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column of whole numbers in 32 bits if all values fit, else unchanged."""
    fits = column.dtype.kind in "iu" and column.min(initial=0) >= _NARROW.min and column.max(initial=0) <= _NARROW.max
    return column.astype(np.int32) if fits else column


def load(path: Path, name: str) -> OpGraph:
    """Read a graph without checks of its values.

    Raises:
        SpecError: the file is damaged, or not an op graph.
        FileNotFoundError: the file does not exist.
    """
    try:
        with path.open("rb") as file:
            if file.read(len(_ARCHIVE)) != _ARCHIVE:
                raise mistake(name, "the file is not an npz archive", MADE_BY)
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
        raise mistake(name, f"the file is damaged or not an op graph: {error}", MADE_BY) from error


def _refuse_bomb(file: BinaryIO, name: str) -> None:
    """Raise SpecError for an excessive compression ratio, before memory for the arrays is allocated."""
    with zipfile.ZipFile(file) as archive:
        size = sum(entry.file_size for entry in archive.infolist())  # integers
    if size > max(LARGE, PACKED * file.seek(0, 2)):
        raise mistake(name, f"the file decompresses to {format_quantity(size, 'B')}, more than {PACKED} times its size", MADE_BY)


def _graph(arrays: Mapping[str, NDArray[Any]], file: str) -> OpGraph:
    if "tables" not in arrays:
        raise mistake(file, "the archive has no array 'tables'", MADE_BY)
    if "ties" not in arrays:
        raise mistake(file, "the archive has no array 'ties'", MADE_BY)

    def block(number: int, times: int) -> Block:
        columns: dict[str, Any] = {column: arrays[f"{number}.{column}"] for column in (*COLUMNS, "edges")}
        return Block(**columns, times=times)

    return read(arrays["tables"].tobytes(), arrays["ties"], block, file)
