"""The tables that the columns of an op graph index, as JSON: labels, costs, capacities, queues, pools and buffers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any, Final, TypeVar

import numpy as np

from hwsim.demand import Capacity, Choice, Cost, Demand, Exchanged, Requests, Term
from hwsim.graph.files.typed import refuse_unfit
from hwsim.graph.opgraph import Alike, Block, Buffer, Ints, Label, Mark, OpGraph, Pool, Queue
from hwsim.origins import Doubt, Origin
from hwsim.spec import Place, SpecError
from hwsim.spec.packed import commanding

FORMAT: Final = "opgraph/1"
COLUMNS: Final = ("label", "cost", "size", "time", "queue", "insert", "take", "give")
MADE_BY: Final = "hwsim.save_graph writes such files"

T = TypeVar("T")


def written(graph: OpGraph) -> bytes:
    """The tables of a graph, and how often its blocks run.

    Raises:
        ValueError: a column has numbers that no file holds.
    """
    if any(getattr(block, column).dtype == object for block in graph.blocks for column in COLUMNS):
        raise ValueError("a column of Python objects cannot be written: its numbers do not fit 64 bits")
    tables = {
        "hwsim": FORMAT,
        "times": [block.times for block in graph.blocks],
        "turns": [_turns(block) for block in graph.blocks],
        **{name: [asdict(each) for each in getattr(graph, name)] for name in _TABLES},
        "alike": None if graph.alike is None else _folded(graph.alike),
    }
    return json.dumps(tables, default=_line).encode()


def _line(value: object) -> dict[str, Any]:
    """A line of a derivation that is written now: `asdict` has copied it as it is."""
    if not isinstance(value, Term):
        raise TypeError(f"no table holds a {type(value).__name__}")
    return asdict(value)


def read(text: bytes, ties: Ints, block: Callable[[int, int], Block], file: str) -> OpGraph:
    """A graph from its tables; block: makes a block from its number and its repetitions.

    Raises:
        SpecError: these are no tables of an op graph.
    """
    try:
        tables = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise mistake(file, f"this is not an op graph, or it is damaged: {error}", MADE_BY) from None
    if (bad := commanding(text, tables)) is not None:
        raise mistake(file, f"the control character U+{ord(bad):04X} does not belong in a text")
    try:
        if tables["hwsim"] != FORMAT:
            raise mistake(file, f"this is '{tables['hwsim']}', not '{FORMAT}'")
        columns: dict[str, Any] = {name: tuple(_fitting(read(each)) for each in tables[name]) for name, read in _TABLES.items()}
        return OpGraph(
            blocks=tuple(
                _turning(tables["turns"][number], number, block(number, int(times)))
                for number, times in enumerate(tables["times"])
            ),
            ties=ties,
            alike=None if tables["alike"] is None else _alike(tables["alike"]),
            **columns,
        )
    except KeyError as error:
        raise mistake(file, f"{error.args[0]!r} is missing", MADE_BY) from None
    except SpecError:
        raise
    except (TypeError, AttributeError, ValueError, IndexError, OverflowError, RecursionError) as error:
        raise mistake(file, f"its tables are not the tables of an op graph: {error}", MADE_BY) from None


def _fitting(value: T) -> T:
    refuse_unfit(value)
    return value


def mistake(file: str, message: str, hint: str | None = None) -> SpecError:
    """One mistake of a whole file."""
    return SpecError.of(Place(file, 0, 0), message, hint)


def tuples(value: Any) -> Any:
    """JSON's lists as tuples, whatever is in them."""
    return tuple(tuples(each) for each in value) if isinstance(value, list) else value


def _maybe(make: Callable[..., T], value: Any) -> T | None:
    return None if value is None else make(**value)


def _plain(make: Callable[..., T]) -> Callable[[dict[str, Any]], T]:
    return lambda row: make(**{key: tuples(value) for key, value in row.items()})


def _term(row: dict[str, Any]) -> Term:
    doubts = tuple(Doubt(*each) for each in row["doubts"])
    inputs = tuple((*each[:-1], _plain(Origin)(each[-1]) if isinstance(each[-1], dict) else each[-1]) for each in row["inputs"])
    return _plain(Term)({**row, "inputs": inputs, "doubts": doubts})


def _cost(row: dict[str, Any]) -> Cost:
    return Cost(
        demand=_plain(Demand)(row["demand"]),
        moved=tuples(row["moved"]),
        why=tuple(_term(each) for each in row["why"]),
        requests=_maybe(Requests, row["requests"]),
        played=bool(row["played"]),
        choice=None if row["choice"] is None else Choice(*row["choice"]),
        exchange=None if row["exchange"] is None else Exchanged(*row["exchange"]),
    )


def _turns(block: Block) -> dict[str, Any]:
    """The iterations of a body: how many it is, and runs (number of the iteration, ops of it)."""
    runs = None if block.turn is None else [[turn, len(list(ops))] for turn, ops in groupby(block.turn.tolist())]
    return {"of": block.turns, "runs": runs}


def _turning(row: dict[str, Any], number: int, block: Block) -> Block:
    """The block with its iterations."""
    if row["runs"] is None or not len(block):
        return replace(block, turns=int(row["of"]))
    turn, ops = zip(*row["runs"], strict=True)
    if sum(ops) != len(block):
        raise ValueError(other_iterations(number, len(block)))
    return replace(block, turns=int(row["of"]), turn=np.repeat(np.array(turn, np.int64), ops))


def other_iterations(number: int, count: int) -> str:
    """The mistake of a block whose iterations do not fit the number of its ops."""
    return f"the iterations of block {number} are not those of {count} ops"


def _folded(alike: Alike) -> dict[str, Any]:
    return {
        "programs": alike.programs,
        **{name: getattr(alike, name).tolist() for name in ("of", "first", "labels", "queues")},
        "met": sorted(alike.met),
        "capacities": dict(alike.capacities),
        "members": dict(alike.members),
    }


def _alike(row: dict[str, Any]) -> Alike:
    columns = {name: np.array(row[name], np.int64) for name in ("of", "first", "labels", "queues")}
    members = {name: tuple(all_of_it) for name, all_of_it in row["members"].items()}
    return Alike(
        programs=tuple(row["programs"]),
        met=frozenset(row["met"]),
        capacities=row["capacities"],
        members=members,
        unseen=False,  # a file has no workload to lower the others from
        **columns,
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
