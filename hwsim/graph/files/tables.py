"""Tables of an op graph as JSON: labels, costs, capacities, queues, pools and buffers, which the columns index."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any, Final, TypeVar

import numpy as np

from hwsim.demand import Capacity, Choice, CollectiveExchange, Cost, Demand, Requests, Term
from hwsim.graph.files.typed import refuse_unfit
from hwsim.graph.opgraph import Block, Buffer, Ints, Label, Mark, OpGraph, Pool, Queue, RepresentedRanks
from hwsim.origins import Origin, UncertaintySource
from hwsim.spec import Place, SpecError
from hwsim.spec.packed import commanding

FORMAT: Final = "opgraph/1"
COLUMNS: Final = ("label", "cost", "size", "time", "queue", "insert", "take", "give")
MADE_BY: Final = "hwsim.save_graph writes such files"

T = TypeVar("T")


def written(graph: OpGraph) -> bytes:
    """Return the tables of a graph, and the number of iterations of its blocks.

    Raises:
        ValueError: a column contains numbers beyond 64 bits.
    """
    if any(getattr(block, column).dtype == object for block in graph.blocks for column in COLUMNS):
        raise ValueError("a column contains numbers beyond 64 bits, which a file does not support")
    tables = {
        "hwsim": FORMAT,
        "times": [block.times for block in graph.blocks],
        "turns": [_turns(block) for block in graph.blocks],
        **{name: [(Label._asdict if name == "labels" else asdict)(entry) for entry in getattr(graph, name)] for name in _TABLES},
        "alike": None if graph.alike is None else _folded(graph.alike),
    }
    return json.dumps(tables, default=_line).encode()


def _line(value: object) -> dict[str, Any]:
    """Convert a line of a derivation, which `asdict` copies unchanged."""
    if not isinstance(value, Term):
        raise TypeError(f"a table cannot contain a {type(value).__name__}")
    return asdict(value)


def read(text: bytes, ties: Ints, block: Callable[[int, int], Block], file: str) -> OpGraph:
    """Return a graph from its tables.

    Args:
        block: function from the number and the iterations of a block to the block.
        file: name of the file in messages.

    Raises:
        SpecError: the text does not contain the tables of an op graph.
    """
    try:
        tables = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise mistake(file, f"the file is damaged or not an op graph: {error}", MADE_BY) from None
    if (bad := commanding(text, tables)) is not None:
        raise mistake(file, f"the control character U+{ord(bad):04X} does not belong in a text")
    try:
        if tables["hwsim"] != FORMAT:
            raise mistake(file, f"expected the format '{FORMAT}', got '{tables['hwsim']}'")
        columns: dict[str, Any] = {name: tuple(_fitting(read(row)) for row in tables[name]) for name, read in _TABLES.items()}
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
        raise mistake(file, f"invalid tables of an op graph: {error}", MADE_BY) from None


def _fitting(value: T) -> T:
    refuse_unfit(value)
    return value


def mistake(file: str, message: str, hint: str | None = None) -> SpecError:
    """Return an error about an entire file."""
    return SpecError.of(Place(file, 0, 0), message, hint)


def tuples(value: Any) -> Any:
    """Return lists of JSON as tuples, recursively."""
    return tuple(map(tuples, value)) if isinstance(value, list) else value


def _plain(make: Callable[..., T]) -> Callable[[dict[str, Any]], T]:
    return lambda row: make(**{key: tuples(value) for key, value in row.items()})


def _term(row: dict[str, Any]) -> Term:
    doubts = tuple(UncertaintySource(*doubt) for doubt in row["doubts"])
    inputs = tuple((*item[:-1], _plain(Origin)(item[-1]) if isinstance(item[-1], dict) else item[-1]) for item in row["inputs"])
    return _plain(Term)({**row, "inputs": inputs, "doubts": doubts})


def _cost(row: dict[str, Any]) -> Cost:
    return Cost(
        demand=_plain(Demand)(row["demand"]),
        moved=tuples(row["moved"]),
        why=tuple(map(_term, row["why"])),
        requests=None if row["requests"] is None else Requests(**row["requests"]),
        played=bool(row["played"]),
        choice=None if row["choice"] is None else Choice(*row["choice"]),
        exchange=None if row["exchange"] is None else CollectiveExchange(*row["exchange"]),
    )


def _turns(block: Block) -> dict[str, Any]:
    """The iterations of a body: their number (`of`), and `runs` of (iteration, number of ops)."""
    runs = None if block.turn is None else [[turn, len(list(ops))] for turn, ops in groupby(block.turn.tolist())]
    return {"of": block.turns, "runs": runs}


def _turning(row: dict[str, Any], number: int, block: Block) -> Block:
    if row["runs"] is None or not len(block):
        return replace(block, turns=int(row["of"]))
    turn, ops = zip(*row["runs"], strict=True)
    if sum(ops) != len(block):
        raise ValueError(other_iterations(number, len(block)))
    return replace(block, turns=int(row["of"]), turn=np.repeat(np.array(turn, np.int64), ops))


def other_iterations(number: int, count: int) -> str:
    """Return the message for a block whose iterations do not match the number of its ops."""
    return f"block {number} has {count} ops, but its iterations are for another number of ops"


def _folded(alike: RepresentedRanks) -> dict[str, Any]:
    return {
        "programs": alike.programs,
        **{name: getattr(alike, name).tolist() for name in ("of", "first", "labels", "queues")},
        "met": sorted(alike.met),
        "capacities": dict(alike.capacities),
        "members": {name: list(names) for name, names in alike.members.items()},
    }


def _alike(row: dict[str, Any]) -> RepresentedRanks:
    columns = {name: np.array(row[name], np.int64) for name in ("of", "first", "labels", "queues")}
    members = {name: tuple(names) for name, names in row["members"].items()}
    return RepresentedRanks(
        programs=tuple(row["programs"]),
        met=frozenset(row["met"]),
        capacities=row["capacities"],
        members=members,
        unseen=False,  # a file contains no workload from which the graph without folding can be lowered
        **columns,
    )


def _buffer(row: dict[str, Any]) -> Buffer:
    marks = {
        "made": Mark(*row["made"]),
        "users": tuple(Mark(*user) for user in row["users"]),
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
