"""Op graphs as Parquet, a row per op of a body, for those who make or read them with tables (extra [tables]: pyarrow).

Columns: `block`, then the columns of `hwsim.graph.opgraph.Block`, and `after`: a list of {op, lag}, the ops of the same body that
end before, `lag` iterations ago. The file's metadata has `hwsim.tables` (labels, costs, capacities, queues, pools and
buffers as JSON) and `hwsim.ties` (rows block, op, block, op, mode as JSON).
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from hwsim.graph.files.npz import narrow
from hwsim.graph.files.tables import COLUMNS, MADE_BY, mistake, read, written
from hwsim.graph.opgraph import Block, Ints, OpGraph
from hwsim.spec import SpecError
from hwsim.spec.limits import refuse_beyond
from hwsim.spec.whole import replaced

_TABLES: Final = b"hwsim.tables"
_TIES: Final = b"hwsim.ties"
EDGES: Final = 20  # of an op, as many as a graph may have in the mean


def _arrow() -> tuple[Any, Any]:
    """pyarrow and its Parquet.

    Raises:
        ModuleNotFoundError: it is not installed; the message says what to do.
    """
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError("op graphs as Parquet need pyarrow: pip install 'hwsim[tables]'", name="pyarrow") from missing


def save(graph: OpGraph, path: Path) -> None:
    """Write a graph."""
    arrow, parquet = _arrow()
    text = written(graph)
    empty = np.empty(0, np.int64)
    columns: dict[str, Any] = {"block": np.repeat(np.arange(len(graph.blocks)), [len(block) for block in graph.blocks])}
    for name in COLUMNS:
        columns[name] = narrow(np.concatenate([empty, *(getattr(block, name) for block in graph.blocks)]))
    columns["size"] = columns["size"].astype(np.float64)
    counts, befores, lags = [empty], [empty], [empty]
    for block in graph.blocks:
        order = np.lexsort((block.edges[:, 2], block.edges[:, 0], block.edges[:, 1]))
        counts.append(np.bincount(block.edges[:, 1].astype(np.int64), minlength=len(block)))
        befores.append(block.edges[order, 0])
        lags.append(block.edges[order, 2])
    pairs = arrow.StructArray.from_arrays([narrow(np.concatenate(befores)), narrow(np.concatenate(lags))], names=["op", "lag"])
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    columns["after"] = arrow.LargeListArray.from_arrays(arrow.array(offsets, arrow.int64()), pairs)
    table = arrow.table(columns).replace_schema_metadata({_TABLES: text, _TIES: json.dumps(graph.ties.tolist()).encode()})
    with replaced(path) as beside:
        parquet.write_table(table, beside)


def load(path: Path, name: str) -> OpGraph:
    """Read a graph, not yet checked.

    Raises:
        SpecError: it is damaged, or no graph, or has more ops or edges than a run may have.
        FileNotFoundError: there is none.
        ModuleNotFoundError: as of `save`.
    """
    arrow, parquet = _arrow()
    try:
        with path.open("rb") as file:
            _refuse_many(parquet.ParquetFile(file).metadata)
            table = parquet.read_table(file)
        metadata = table.schema.metadata or {}
        if _TABLES not in metadata or _TIES not in metadata:
            raise mistake(name, "this table is no op graph: its metadata has no 'hwsim.tables' and 'hwsim.ties'", MADE_BY)
        ties = np.array(json.loads(metadata[_TIES]), np.int64).reshape(-1, 5)
        columns = {each: table.column(each).to_numpy() for each in ("block", *COLUMNS)}
        after = table.column("after").combine_chunks()
        pairs = after.flatten()
        waits = np.diff(after.offsets.to_numpy())
        befores, lags = (np.asarray(each) for each in (pairs.field("op"), pairs.field("lag")))
    except FileNotFoundError:
        raise
    except (arrow.ArrowException, KeyError, OSError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, SpecError):
            raise
        raise mistake(name, f"this is no op graph, or a damaged one: {error}", MADE_BY) from error
    splits = np.concatenate([[0], np.cumsum(waits)])

    def block(number: int, times: int) -> Block:
        first, last = np.searchsorted(columns["block"], [number, number + 1]).tolist()
        begin, end = int(splits[first]), int(splits[last])
        targets = np.repeat(np.arange(last - first), waits[first:last])
        edges: Ints = np.column_stack([befores[begin:end], targets, lags[begin:end]]).astype(np.int64).reshape(-1, 3)  # count
        block_columns: dict[str, Any] = {each: columns[each][first:last] for each in COLUMNS}
        return Block(**block_columns, edges=edges, times=times)

    return read(metadata[_TABLES], ties, block, name)


def _refuse_many(metadata: Any) -> None:
    """Raise SpecError before a table is read that unpacks to more than a run may have."""
    refuse_beyond("ops", metadata.num_rows)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    columns = [group.column(number) for group in groups for number in range(group.num_columns)]
    values = sum(column.num_values for column in columns if column.path_in_schema.endswith(".op"))  # integers
    refuse_beyond("ops", values // EDGES)
