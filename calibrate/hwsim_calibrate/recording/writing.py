"""A recording as files: the workload, and the measured times next to it."""

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
from hwsim_calibrate.recording.folding import Folded, Tell, fold
from hwsim_calibrate.recording.nodes import Leaf, Loop, Node
from hwsim_calibrate.recording.script import Recording
from hwsim_calibrate.recording.tape import Made, Step

FORMAT: Final = "recording/1"
NEAR: Final = 32e3  # bytes: no array that is used again so soon has left the first cache
NOTICED: Final = 128 * 1024  # bytes from which on an allocator may ask the system for an array by itself
PAGE: Final = 4096
HUGE: Final = 2.0**21
ALWAYS: Final = 2.0**25  # bytes of an array that lies on new pages unless the op says otherwise
PAGED: Final = (
    "access", "attention", "compute", "convolution", "elementwise", "embedding", "matmul", "norm", "pool", "random", "reduce",
    "rnn",
    "softmax",
)  # fmt: skip
WORDS: Final = 4  # of reasons why something is written out
_PLAIN: Final = re.compile(r"[A-Za-z_$][\w@.$-]*( [\w@.-]+)*|\d[\w.+-]*( [kMGT]?i?B| [num]?s)")
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off"})


def document(recording: Recording, *, loops: bool = True, tell: Tell | None = None) -> tuple[str, dict[str, Any]]:
    """(text of the workload, measured times) of a recording; tell: progress in calls whose names are right."""
    folded = fold(recording.steps, loops=loops, tell=tell)
    return _yaml(recording, folded), _measured(recording, folded)


def measured_path(workload: str | Path) -> Path:
    """The file of measured times, next to the workload.

    >>> measured_path("a/step.yaml").as_posix()
    'a/step.measured.json.gz'
    """
    path = Path(workload)
    return path.with_name(path.name.removesuffix(".yaml").removesuffix(".yml") + ".measured.json.gz")


def packed(measured: Mapping[str, Any]) -> bytes:
    """JSON, compressed; the same bytes for the same measurements."""
    text = json.dumps(measured, indent=1, sort_keys=True, allow_nan=False) + "\n"
    return gzip.compress(text.encode(), mtime=0)


# ---- what was measured ----


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
    """One statement: how often it was executed, the time of one (median) and, by the clock that counts, of all together."""
    calls = [recording.steps[call] for call in leaf.calls]
    return {
        "name": leaf.name,
        "function": calls[0].name,
        "line": calls[0].line,
        "kind": calls[0].op.kind,
        "times": len(calls),
        "wall_s": median(each.wall for each in calls),
        "cpu_s": median(each.cpu for each in calls),
        "total_s": sum(recording.seconds(each) for each in calls),
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
    """The key that says how the program's thread goes on."""
    if not recording.dispatch:
        return "runtime: {blocks: all, free: last-use}  # one thread makes each call and waits for its end"
    dispatch = f"{recording.dispatch * 1e6:.3g} us"
    return f"runtime: {{blocks: cpu, dispatch: {dispatch}, free: last-use}}  # dispatch: what the host takes between two calls"


def notes(recording: Recording, more: Sequence[str] = ()) -> str:
    """The notes of the workload: source, calls without an op, loops that are written out."""
    library = " and ".join(recording.libraries)
    parts = [f"recorded from a script of {library}; {len(recording.steps)} calls"]
    if "PyTorch" in recording.libraries:
        parts.append(
            "shapes alone, nothing was timed" if recording.fake else f"{recording.threads} thread{'s' * (recording.threads > 1)}"
        )
    unknown = [step for step in recording.steps if step.op.reason]
    if unknown:
        names = list(dict.fromkeys(step.name for step in unknown))
        listed = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        parts.append(f"uncalibrated, as long as they took here (busy): {len(unknown)} of them ({listed})")
    return "; ".join([*parts, *recording.notes, *more[:WORDS]])


def _statements(recording: Recording, folded: Folded, nodes: Sequence[Node], indent: str) -> Iterator[str]:
    before = ""
    if len(nodes) > 1 and indent != "  ":  # the turn before ends with the last
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
        _spread(keys, recording, steps, before)
    reads = _distinct([folded.names[value] for value in first.reads if value is not None])
    updates = _distinct([folded.names[value] for value in first.updates if value is not None])
    if reads:
        keys["reads"] = reads
    if written := {folded.names[each.value]: _size(each) for each in first.made if each.fresh}:
        keys["writes"] = written
    existing = {folded.names[each.value]: _size(each) for each in first.made if not each.fresh}
    if updates or existing:
        keys["updates"] = existing or updates
    text = f"{indent}- {first.op.kind}: {_value(keys)}"
    return f"{text}  # uncalibrated: {first.op.reason}" if first.op.reason else text


def _spread(keys: dict[str, Any], recording: Recording, steps: Sequence[Step], before: str) -> None:
    """Add the cores, the call before it, new pages, and the age of its operands (median of all turns)."""
    op = steps[0].op
    keys["cores"] = recording.threads if op.kind == "matmul" else 1
    if steps[0].name != before and op.call is not None:
        keys["among_others"] = True
    if op.kind in PAGED and (paged := new_pages(steps)) is not None:
        pages, part = paged
        keys["new_pages"] = round(pages, 1) if pages % 1 else round(pages)
        if 0 < part < 1:
            keys["new_bytes"] = f"{part * _written(steps[0]):.3g} B"
    ages = [median(column) for column in zip(*(step.op.since for step in steps), strict=False)]
    if ages and max(ages) > NEAR:
        keys["since"] = [f"{age:.3g} B" for age in ages]


def new_pages(steps: Sequence[Step]) -> tuple[float, float] | None:
    """(pages that these calls touch for the first time, part of what they write on them), the mean; None for the default.

    A small array lies where another has been. A large one may come from the system page by page, which depends on what the
    program has freed before; therefore pages are counted.
    """
    size = _written(steps[0])
    if size < NOTICED:
        return None
    fresh = [
        step.faults for step in steps if step.faults * PAGE >= size / 2 or (size >= 2 * HUGE and step.faults >= size // HUGE)
    ]
    if fresh:
        return sum(fresh) / len(steps), len(fresh) / len(steps)
    return (0.0, 0.0) if size >= ALWAYS else None


def _written(step: Step) -> float:
    """Bytes that a call writes: of the arrays it makes, else of one of its shape."""
    if fresh := sum(each.bytes for each in step.made if each.fresh):
        return float(fresh)
    if step.op.kind == "access" and step.op.call is not None:
        return step.op.call.written
    shape, dtype = step.op.keys.get("shape"), str(step.op.keys.get("result", step.op.keys.get("dtype", "")))
    plain = step.op.kind == "elementwise" and isinstance(shape, list | tuple)
    return math.prod(shape) * BYTES.get(dtype, 8.0) if plain and shape else 0.0


def _size(made: Made) -> Any:
    return {"shape": list(made.shape), "dtype": made.dtype} if made.dtype and made.shape else f"{made.bytes} B"


def _distinct(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _value(value: Any) -> str:
    """YAML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_value(key)}: {_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    text = str(value)
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else json.dumps(text)


def summary(recording: Recording, measured: Mapping[str, Any]) -> str:
    """A summary of the recording for a terminal."""
    statements, inside = len(measured["ops"]), recording.inside
    lines = [f"{len(recording.steps)} calls as {statements} statements"]
    total = recording.cpu if recording.clock == "cpu" else recording.wall
    part = f", {percent(inside / total, '.0f')} of the script's" if total > 0 else ""
    lines.append(f"calls take {format_quantity(inside, 's', 3)}{part} (recording slows a script down between its calls)")
    if recording.unknown > 0:
        names: dict[str, None] = dict.fromkeys(step.op.reason for step in recording.steps if step.op.reason)
        lines.append(f"uncalibrated: {format_share(recording.unknown / inside)} of the calls' time, recorded as busy")
        lines += [f"  {name}" for name in names]
    lines += list(recording.notes)
    written = [str(each) for each in measured.get("written_out", ())]
    lines += written[:WORDS] + ([f"and {len(written) - WORDS} more lines"] if len(written) > WORDS else [])
    return "\n".join(lines) + "\n"
