"""Output of a recording: the workload, the file of measured times next to it, and a summary."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from hwsim.formats import format_quantity, format_share, percent
from hwsim.units import BYTES
from hwsim_calibrate.recording.loops import Folded, Tell, fold
from hwsim_calibrate.recording.nodes import Leaf, Loop, Node
from hwsim_calibrate.recording.script import Recording
from hwsim_calibrate.recording.tape import RecordedArray, Step

FORMAT: Final = "recording/1"
L1_BYTES: Final = 32e3  # arrays that are reused within this distance are still in the L1 cache
MAPPED_FROM: Final = 128 * 1024  # bytes of an array from which the allocator may map it separately
PAGE: Final = 4096  # bytes
HUGE_PAGE: Final = 2.0**21  # bytes
ALWAYS_NEW_FROM: Final = 2.0**25  # bytes of an array that is on new pages by default
PAGED_OPS: Final = (
    "access", "attention", "compute", "convolution", "elementwise", "embedding", "matmul", "norm", "pool", "random", "reduce",
    "rnn",
    "softmax",
)  # fmt: skip
MAX_NOTES: Final = 4  # about unrolled loops
_PLAIN: Final = re.compile(r"[A-Za-z_$][\w@.$-]*( [\w@.-]+)*|\d[\w.+-]*( [kMGT]?i?B| [num]?s)")
_YAML_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off"})


def document(recording: Recording, *, loops: bool = True, tell: Tell | None = None) -> tuple[str, dict[str, Any]]:
    """Return (text of the workload, measured times) of a recording.

    Args:
        recording: the recording.
        loops: whether repeated calls are written as `repeat`.
        tell: function that receives the progress in calls.
    """
    folded = fold(recording.steps, loops=loops, tell=tell)
    return _yaml(recording, folded), _measured(recording, folded)


def measured_path(workload: str | Path) -> Path:
    """Return the path of the file of measured times next to a workload.

    >>> measured_path("a/step.yaml").as_posix()
    'a/step.measured.json.gz'
    """
    path = Path(workload)
    return path.with_name(path.name.removesuffix(".yaml").removesuffix(".yml") + ".measured.json.gz")


def packed(measured: Mapping[str, Any]) -> bytes:
    """Return measured times as compressed JSON, reproducibly."""
    text = json.dumps(measured, indent=1, sort_keys=True, allow_nan=False) + "\n"
    return gzip.compress(text.encode(), mtime=0)


# ---- measured times ----


def _measured(recording: Recording, folded: Folded) -> dict[str, Any]:
    from hwsim_calibrate.environment import fingerprint

    return {
        "hwsim": FORMAT,
        "name": recording.name,
        "runs": recording.runs,
        "clock": recording.clock,
        "threads": recording.threads,
        "wall_s": recording.wall,
        "cpu_s": recording.cpu,
        "notes": list(recording.notes),
        "environment": fingerprint(),
        "written_out": list(folded.notes),
        "ops": [_row(recording, leaf) for leaf in folded.leaves()],
    }


def _row(recording: Recording, leaf: Leaf) -> dict[str, Any]:
    """Return the entry of a statement: number of calls, median times, and total time on the clock that counts."""
    calls = [recording.steps[call] for call in leaf.calls]
    return {
        "name": leaf.name,
        "function": calls[0].name,
        "line": calls[0].line,
        "kind": calls[0].op.kind,
        "times": len(calls),
        "wall_s": median(step.wall for step in calls),
        "cpu_s": median(step.cpu for step in calls),
        "total_s": sum(recording.seconds(step) for step in calls),
        "uncalibrated": calls[0].op.reason,
    }


# ---- the workload ----


def _yaml(recording: Recording, folded: Folded) -> str:
    lines = [
        "hwsim: workload/1",
        f"name: {_value(recording.name)}",
        f"notes: {json.dumps(notes(recording, folded.notes), ensure_ascii=False)}",
        "let: {device: cpu}",
        _runtime(recording),
        "program:",
        "  each: $device",
        "  do:",
        *_statements(recording, folded, folded.nodes, "  "),
    ]
    return "\n".join(lines) + "\n"


def _runtime(recording: Recording) -> str:
    if not recording.dispatch:
        return "runtime: {blocks: all, free: last-use}  # one thread executes each call and waits for it"
    dispatch = f"{recording.dispatch * 1e6:.3g} us"
    return f"runtime: {{blocks: cpu, dispatch: {dispatch}, free: last-use}}  # dispatch: host time between two calls"


def notes(recording: Recording, more: Sequence[str] = ()) -> str:
    """Return the notes of the workload: source, calls without an op, unrolled loops."""
    library = " and ".join(recording.libraries)
    parts = [f"recorded from a script with {library}; {len(recording.steps)} calls"]
    if "PyTorch" in recording.libraries:
        parts.append(
            "shapes only, nothing was timed" if recording.fake else f"{recording.threads} thread{'s' * (recording.threads > 1)}"
        )
    unknown = [step for step in recording.steps if step.op.reason]
    if unknown:
        names = list(dict.fromkeys(step.name for step in unknown))
        listed = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        parts.append(f"{len(unknown)} calls are uncalibrated and have their measured time ({listed})")
    return "; ".join([*parts, *recording.notes, *more[:MAX_NOTES]])


def _statements(recording: Recording, folded: Folded, nodes: Sequence[Node], indent: str) -> Iterator[str]:
    before = ""
    if len(nodes) > 1 and indent != "  ":  # the previous iteration ends with the last statement
        last = nodes[-1]
        before = recording.steps[last.calls[-1]].name if isinstance(last, Leaf) else ""
    elif nodes and isinstance(nodes[0], Leaf) and indent != "  ":
        before = recording.steps[nodes[0].calls[0]].name
    for node in nodes:
        if isinstance(node, Loop):
            yield f"{indent}- repeat:"
            yield f"{indent}    times: {node.times}"
            yield f"{indent}    do:"
            yield from _statements(recording, folded, node.body, indent + "    ")
            before = ""
        else:
            yield _statement(recording, folded, node, indent, before)
            before = recording.steps[node.calls[0]].name


def _statement(recording: Recording, folded: Folded, leaf: Leaf, indent: str, before: str) -> str:
    steps = [recording.steps[call] for call in leaf.calls]
    first = steps[0]
    keys: dict[str, Any] = {"name": leaf.name, **first.op.keys}
    if first.op.kind == "busy":
        keys["time"] = f"{median(recording.seconds(step) for step in steps) * 1e6:.4g} us"
    else:
        _add_conditions(keys, recording, steps, before)
    reads = _distinct([folded.names[value] for value in first.reads if value is not None])
    updates = _distinct([folded.names[value] for value in first.updates if value is not None])
    if reads:
        keys["reads"] = reads
    if written := {folded.names[array.value]: _size(array) for array in first.made if array.is_new}:
        keys["writes"] = written
    existing = {folded.names[array.value]: _size(array) for array in first.made if not array.is_new}
    if updates or existing:
        keys["updates"] = existing or updates
    text = f"{indent}- {first.op.kind}: {_value(keys)}"
    return f"{text}  # uncalibrated: {first.op.reason}" if first.op.reason else text


def _add_conditions(keys: dict[str, Any], recording: Recording, steps: Sequence[Step], before: str) -> None:
    """Add cores, new pages, median reuse distances of the operands, and whether another call precedes the statement."""
    op = steps[0].op
    keys["cores"] = recording.threads if op.kind == "matmul" else 1
    if steps[0].name != before and op.call is not None:
        keys["among_others"] = True
    if op.kind in PAGED_OPS and (paged := new_pages(steps)) is not None:
        pages, share = paged
        keys["new_pages"] = round(pages, 1) if pages % 1 else round(pages)
        if 0 < share < 1:
            keys["new_bytes"] = f"{share * _written(steps[0]):.3g} B"
    ages = [median(column) for column in zip(*(step.op.since for step in steps), strict=False)]
    if ages and max(ages) > L1_BYTES:
        keys["since"] = [f"{age:.3g} B" for age in ages]


def new_pages(steps: Sequence[Step]) -> tuple[float, float] | None:
    """Return the mean (page faults per call, share of the written bytes on new pages); None for the default.

    Small arrays reuse memory. Whether large arrays are on new pages depends on what the program has freed before, so the page
    faults are counted.
    """
    size = _written(steps[0])
    if size < MAPPED_FROM:
        return None
    fresh = [
        step.faults
        for step in steps
        if step.faults * PAGE >= size / 2 or (size >= 2 * HUGE_PAGE and step.faults >= size // HUGE_PAGE)
    ]
    if fresh:
        return sum(fresh) / len(steps), len(fresh) / len(steps)
    return (0.0, 0.0) if size >= ALWAYS_NEW_FROM else None


def _written(step: Step) -> float:
    """Return the bytes that a call writes: of the arrays that it creates, else of its result's shape."""
    if fresh := sum(array.bytes for array in step.made if array.is_new):
        return float(fresh)
    if step.op.kind == "access" and step.op.call is not None:
        return step.op.call.written
    shape, dtype = step.op.keys.get("shape"), str(step.op.keys.get("result", step.op.keys.get("dtype", "")))
    plain = step.op.kind == "elementwise" and isinstance(shape, list | tuple)
    return math.prod(shape) * BYTES.get(dtype, 8.0) if plain and shape else 0.0


def _size(made: RecordedArray) -> Any:
    return {"shape": list(made.shape), "dtype": made.dtype} if made.dtype and made.shape else f"{made.bytes} B"


def _distinct(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _value(value: Any) -> str:
    """Return a value as YAML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_value(key)}: {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    text = str(value)
    return text if _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS else json.dumps(text)


def summary(recording: Recording, measured: Mapping[str, Any]) -> str:
    """Return a summary of the recording for a terminal."""
    statements, inside = len(measured["ops"]), recording.inside
    lines = [f"{len(recording.steps)} calls as {statements} statements"]
    total = recording.cpu if recording.clock == "cpu" else recording.wall
    part = f", {percent(inside / total, '.0f')} of the script's time" if total > 0 else ""
    lines.append(f"the calls take {format_quantity(inside, 's', 3)}{part} (recording slows the script down between calls)")
    if recording.unknown > 0:
        names: dict[str, None] = dict.fromkeys(step.op.reason for step in recording.steps if step.op.reason)
        lines.append(f"uncalibrated: {format_share(recording.unknown / inside)} of the calls' time, written as `busy`")
        lines += [f"  {name}" for name in names]
    lines += list(recording.notes)
    written = [str(note) for note in measured.get("written_out", ())]
    lines += written[:MAX_NOTES] + ([f"and {len(written) - MAX_NOTES} more lines"] if len(written) > MAX_NOTES else [])
    return "\n".join(lines) + "\n"
