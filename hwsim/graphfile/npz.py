"""Op graphs as files: numpy's npz, an array per column, for graphs that no YAML file can hold.

    hwsim.save_graph(graph, "big.npz")
    hwsim.simulate("machine.yaml", hwsim.load_graph("big.npz"))        # or its path; or on the command line

An archive has the columns of block n as `n.label`, `n.cost`, `n.size`, `n.time`, `n.queue`, `n.insert`, `n.take`, `n.give`
(an entry per op; what each says: `hwsim.opgraph.Block`) and `n.edges` (rows from, to, lag); `ties`; and `tables`: labels,
costs, capacities, queues, pools and buffers as JSON in UTF-8.  Indices are kept in 32 bits: 40 B an op and 12 B an edge.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from hwsim.demand import Capacity, Choice, Cost, Demand, Requests, Term
from hwsim.opgraph import EVERY, LAST, PAIRED, Block, Buffer, Label, Mark, OpGraph, Pool, Queue
from hwsim.spec import Mistake, Place, SpecError

FORMAT: Final = "opgraph/1"
SUFFIX: Final = ".npz"
COLUMNS: Final = ("label", "cost", "size", "time", "queue", "insert", "take", "give")

_NARROW: Final = np.iinfo(np.int32)
_ARCHIVE: Final = b"PK"
_MADE_BY: Final = "hwsim.save_graph writes such files"

T = TypeVar("T")


def save_graph(graph: OpGraph, path: str | Path) -> Path:
    """Write a graph, uncompressed; the path, which ends in .npz.

    Raises:
        ValueError: another ending, or a column that has no numbers of the machine.
        OSError: it cannot be written.
    """
    path = Path(path)
    if path.suffix != SUFFIX:
        raise ValueError(f"an op graph is written as {SUFFIX}, not as '{path.name}'")
    if any(getattr(block, column).dtype == object for block in graph.blocks for column in COLUMNS):
        raise ValueError("a column of Python objects cannot be written: its numbers do not fit 64 bits")
    tables = {
        "hwsim": FORMAT,
        "times": [block.times for block in graph.blocks],
        **{name: [asdict(each) for each in getattr(graph, name)] for name in _TABLES},
    }
    arrays: dict[str, Any] = {"tables": np.frombuffer(json.dumps(tables).encode(), np.uint8), "ties": graph.ties}
    for number, block in enumerate(graph.blocks):
        for column in (*COLUMNS, "edges"):
            arrays[f"{number}.{column}"] = _narrow(getattr(block, column))
    with path.open("wb") as file:
        np.savez(file, **arrays)
    return path


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    fits = column.dtype.kind in "iu" and column.min(initial=0) >= _NARROW.min and column.max(initial=0) <= _NARROW.max
    return column.astype(np.int32) if fits else column


def load_graph(path: str | Path) -> OpGraph:
    """Read a graph.

    Raises:
        SpecError: there is no such file, it is damaged, or what it says is no graph.
    """
    name = str(path)
    try:
        with Path(path).open("rb") as file:
            if file.read(len(_ARCHIVE)) != _ARCHIVE:
                raise _mistake(name, "this is no archive of arrays", _MADE_BY)
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                graph = _graph({key: archive[key] for key in archive.files}, name)
    except FileNotFoundError:
        raise _mistake(name, "there is no such file") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, MemoryError) as error:
        if isinstance(error, SpecError):
            raise
        raise _mistake(name, f"this is no op graph, or a damaged one: {error}", _MADE_BY) from error
    for problem in _problems(graph):
        raise _mistake(name, problem, "the columns are described in hwsim.opgraph.Block")
    return graph


def _mistake(file: str, message: str, hint: str | None = None) -> SpecError:
    return SpecError([Mistake(Place(file, 0, 0), message, hint)])


# ---------------------------------------------------------------- tables


def _graph(arrays: Mapping[str, NDArray[Any]], file: str) -> OpGraph:
    if "tables" not in arrays:
        raise _mistake(file, "this archive has no 'tables'", _MADE_BY)
    try:
        tables = json.loads(arrays["tables"].tobytes())
        if tables["hwsim"] != FORMAT:
            raise _mistake(file, f"this is '{tables['hwsim']}', not '{FORMAT}'")
        blocks = tuple(_block(arrays, number, int(times)) for number, times in enumerate(tables["times"]))
        return OpGraph(
            blocks=blocks,
            ties=arrays["ties"],
            **{name: tuple(read(each) for each in tables[name]) for name, read in _TABLES.items()},
        )
    except KeyError as error:
        raise _mistake(file, f"{error.args[0]!r} is missing", _MADE_BY) from None
    except (TypeError, AttributeError) as error:
        raise _mistake(file, f"its tables are not those of an op graph: {error}", _MADE_BY) from None


def _block(arrays: Mapping[str, NDArray[Any]], number: int, times: int) -> Block:
    columns: dict[str, Any] = {column: arrays[f"{number}.{column}"] for column in (*COLUMNS, "edges")}
    return Block(**columns, times=times)


def _tuples(value: Any) -> Any:
    """JSON's lists as tuples, whatever is in them."""
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value


def _maybe(make: Callable[..., T], value: Any) -> T | None:
    return None if value is None else make(**value)


def _plain(make: Callable[..., T]) -> Callable[[dict[str, Any]], T]:
    return lambda row: make(**{key: _tuples(value) for key, value in row.items()})


def _cost(row: dict[str, Any]) -> Cost:
    return Cost(
        demand=_plain(Demand)(row["demand"]),
        moved=_tuples(row["moved"]),
        why=tuple(_plain(Term)(each) for each in row["why"]),
        requests=_maybe(Requests, row["requests"]),
        played=bool(row["played"]),
        choice=None if row["choice"] is None else Choice(*row["choice"]),
    )


def _buffer(row: dict[str, Any]) -> Buffer:
    marks = {
        "made": Mark(*row["made"]),
        "users": tuple(Mark(*each) for each in row["users"]),
        "renamed": None if row["renamed"] is None else Mark(*row["renamed"]),
    }
    return Buffer(**{**row, **marks})


_TABLES: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "labels": _plain(Label),
    "costs": _cost,
    "capacities": _plain(Capacity),
    "queues": _plain(Queue),
    "pools": _plain(Pool),
    "buffers": _buffer,
}


# ---------------------------------------------------------------- what cannot be


def _problems(graph: OpGraph) -> list[str]:
    """What is wrong with the columns, in words; the first of each block."""
    found = [problem for number, block in enumerate(graph.blocks) if (problem := _wrong_block(graph, number, block))]
    if found:
        return found
    known = {capacity.name for capacity in graph.capacities}
    for cost in graph.costs:
        for name, _ in (*cost.demand.amounts, *cost.demand.holds):
            if name not in known:
                return [f"a cost draws on '{name}', which is none of the capacities"]
    if any(pool.servers < 1 for pool in graph.pools):
        return ["a pool has at least one server"]
    return _wrong_ties(graph)


def _wrong_block(graph: OpGraph, number: int, block: Block) -> str:
    count = len(block)
    if block.times < 0:
        return f"block {number} runs {block.times} times"
    for column in COLUMNS:
        values = getattr(block, column)
        kind = "f" if column == "size" else "i"
        if values.ndim != 1 or len(values) != count or values.dtype.kind != kind:
            wanted = "numbers" if kind == "f" else "whole numbers"
            return f"'{number}.{column}' is not a column of {count} {wanted}, one per op of 'label'"
    if block.edges.ndim != 2 or block.edges.shape[1] != 3 or block.edges.dtype.kind != "i":
        return f"'{number}.edges' does not have rows of three whole numbers: from, to, lag"
    limits: Sequence[tuple[str, NDArray[Any], int, int]] = (
        ("label", block.label, 0, len(graph.labels)),
        ("cost", block.cost, -1, len(graph.costs)),
        ("queue", block.queue, -1, len(graph.queues)),
        ("insert", block.insert, -1, count),
        ("take", block.take, -1, len(graph.pools)),
        ("give", block.give, -1, len(graph.pools)),
        ("time", block.time, 0, 2**63),
        ("edges", block.edges[:, :2], 0, count),
        ("edges", block.edges[:, 2], 0, 2**63),
    )
    for column, values, least, stop in limits:
        if values.size and not (values.min() >= least and int(values.max()) < stop):
            most = f" to {stop - 1:,}" if stop < 2**63 else " or more"
            return f"'{number}.{column}' has values beyond {least}{most}"
    if block.size.size and not (np.isfinite(block.size).all() and (block.size >= 0).all()):
        return f"'{number}.size' has values that are negative or not finite"
    return ""


def _wrong_ties(graph: OpGraph) -> list[str]:
    ties = graph.ties
    if ties.ndim != 2 or ties.shape[1] != 5 or ties.dtype.kind != "i":
        return ["'ties' does not have rows of five whole numbers: block, op, block, op, mode"]
    for before, op, after, then, mode in ties.tolist():
        for block, position in ((before, op), (after, then)):
            if not (0 <= block < len(graph.blocks) and 0 <= position < len(graph.blocks[block])):
                return [f"a tie names op {position} of block {block}, which there is not"]
        if mode not in {LAST, EVERY, PAIRED}:
            return [f"a tie has mode {mode}"]
        if mode == PAIRED and graph.blocks[before].times != graph.blocks[after].times:
            return [f"a tie pairs blocks {before} and {after}, which do not run equally often"]
    return []
