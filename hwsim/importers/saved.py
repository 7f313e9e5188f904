"""An import as a file: the op graph, and with it the recording and the columns of the replay, as arrays of one archive.

Readers of op graphs skip these arrays (`npz.BESIDE`). `hwsim simulate` runs the graph on any machine: its times are the
recorded ones.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hwsim.graph.files import npz, refuse_long
from hwsim.graph.files.tables import mistake, tuples
from hwsim.graph.opgraph import OpGraph
from hwsim.importers.recording import Collective, Edges, Facts, Lane, Left, Memory, Rank, Recording, Slices
from hwsim.importers.replay import Replay

_SLICES: Final = ("what", "name", "lane", "start", "duration", "link", "facts")
_MEMORY: Final = ("time", "bytes", "held", "device")
_STATED: Final = ("before", "then")
COLUMNS: Final = ("part", "rank", "slice", "recorded", "recorded_end", "unexplained", "waited")


def save(replay: Replay, path: Path, graph: OpGraph | None = None) -> Path:
    """Write a replay; graph: the one to write instead of its own, with the same ops. The path, which ends in .npz."""
    recording = replay.recording
    arrays: dict[str, NDArray[Any]] = {f"replay.{name}": getattr(replay, name) for name in COLUMNS}
    tables: dict[str, Any] = {
        "mode": replay.mode,
        "format": recording.format,
        "zero": recording.zero,
        "notes": list(recording.notes),
        "clocked": recording.clocked,
        "left": [asdict(each) for each in recording.left],
        "ranks": [_tables(rank) for rank in recording.ranks],
    }
    for number, rank in enumerate(recording.ranks):
        arrays |= {f"recording.{number}.{name}": getattr(rank.slices, name) for name in _SLICES}
        if rank.memory is not None:
            arrays |= {f"recording.{number}.memory.{name}": getattr(rank.memory, name) for name in _MEMORY}
        if rank.stated is not None:
            arrays |= {f"recording.{number}.stated.{name}": getattr(rank.stated, name) for name in _STATED}
    arrays["recording.tables"] = np.frombuffer(json.dumps(tables).encode(), np.uint8)
    graph = replay.graph if graph is None else graph
    refuse_long(graph, path)
    npz.save(graph, path, arrays)
    return path


def _tables(rank: Rank) -> dict[str, Any]:
    return {
        "number": rank.number, "world": rank.world, "file": rank.file, "host": rank.host, "devices": list(rank.devices),
        "names": list(rank.names), "lanes": [asdict(lane) for lane in rank.lanes], "facts": [asdict(each) for each in rank.facts],
        "shift": rank.shift,
    }  # fmt: skip


def is_import(path: Path) -> bool:
    """Whether an archive holds an import: an op graph with its recording."""
    with np.load(path, allow_pickle=False) as archive:
        return "recording.tables" in archive.files


def load(path: Path) -> tuple[Recording, dict[str, NDArray[Any]], str]:
    """The recording of an import, the columns of its replay by name, and the mode of the replay.

    Raises:
        SpecError: the archive holds no import, or a damaged one.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            if "recording.tables" not in archive.files:
                raise mistake(str(path), "this archive has no recording", "hwsim import ... -o step.npz writes one with it")
            tables = json.loads(archive["recording.tables"].tobytes())
            ranks = tuple(_rank(number, row, archive) for number, row in enumerate(tables["ranks"]))
            columns = {name: archive[f"replay.{name}"] for name in COLUMNS}
    except (KeyError, ValueError, TypeError, OSError, EOFError) as error:
        raise mistake(str(path), f"this is a damaged import: {error}") from error
    left = tuple(Left(**each) for each in tables["left"])
    recording = Recording(
        tables["format"],
        ranks,
        left,
        float(tables["zero"]),
        tuple(tables["notes"]),
        clocked=tables.get("clocked", True),
    )
    return recording, columns, str(tables["mode"])


def _rank(number: int, row: dict[str, Any], archive: Any) -> Rank:
    def held(part: str, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: archive[f"recording.{number}.{part}{name}"] for name in names}

    has_memory = f"recording.{number}.memory.time" in archive.files
    has_stated = f"recording.{number}.stated.before" in archive.files
    return Rank(
        number=row["number"],
        world=row["world"],
        file=row["file"],
        host=row["host"],
        devices=tuple((int(device), str(name)) for device, name in row["devices"]),
        slices=Slices(**held("", _SLICES)),
        names=tuple(row["names"]),
        lanes=tuple(Lane(**lane) for lane in row["lanes"]),
        facts=tuple(_facts(each) for each in row["facts"]),
        memory=Memory(**held("memory.", _MEMORY)) if has_memory else None,
        stated=Edges(**held("stated.", _STATED)) if has_stated else None,
        shift=row["shift"],
    )


def _facts(row: dict[str, Any]) -> Facts:
    plain = {name: tuples(value) for name, value in row.items()}
    if row["collective"] is not None:
        plain["collective"] = Collective(**{name: tuples(value) for name, value in row["collective"].items()})
    return Facts(**plain)
