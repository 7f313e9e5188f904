"""Recorded requests: a CSV of one's own, Azure's or BurstGPT's, and Mooncake's JSONL with the blocks of its prefixes.

| file | columns |
|---|---|
| CSV | arrival (seconds), and for a model prompt and output (tokens) |
| Azure's CSV | TIMESTAMP (a date), ContextTokens, GeneratedTokens |
| BurstGPT's CSV | Timestamp (seconds), Request tokens, Response tokens |
| Mooncake's JSONL | timestamp (milliseconds), input_length, output_length, hash_ids (of each 512 tokens) |

**Source**: Azure/AzurePublicDataset (2023, 2024), HPMLL/BurstGPT, kvcache-ai/Mooncake: FAST25-release/traces.
"""

from __future__ import annotations

import csv
import json
from array import array
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.records import dataclass
from hwsim.spec import Place, SpecError
from hwsim.ticks import Column
from hwsim.workload.load.keys import near

MOST: Final = 5_000_000  # requests of a trace
HASHED: Final = 512  # tokens of a block of Mooncake's
_MANY: Final = 10**9
_HINT: Final = "a CSV file with the columns arrival, prompt, output; one of Azure's or BurstGPT's; or Mooncake's JSONL"


class Line(NamedTuple):
    """A line: its number, its instant as written, tokens (None where the file has none), and the blocks of its prompt."""

    number: int
    arrival: Any
    prompt: Any
    output: Any
    blocks: Any = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """Requests of a file in order of arrival.

    Args:
        arrival: fs; lines: the line of each in the file.
        prompt, output: tokens; 0 where the file has none.
        blocks: ids of all prompts' blocks, one prompt after another; begins: first block of each prompt, and the end.
        block: tokens of a block; 0: the file has none.
    """

    arrival: Column
    lines: NDArray[np.int64]
    prompt: NDArray[np.int64]
    output: NDArray[np.int64]
    blocks: NDArray[np.int64]
    begins: NDArray[np.int64]
    block: int

    def __len__(self) -> int:
        return len(self.arrival)

    def prefix(self, request: int) -> list[int]:
        """The ids of the blocks of a prompt."""
        found: list[int] = self.blocks[self.begins[request] : self.begins[request + 1]].tolist()
        return found


def read_trace(name: str, place: Place, *, tokens: bool, most: int | None = None) -> Trace:
    """The requests of a file.

    Args:
        place: position of the name in the workload; paths start from its file.
        tokens: whether the lengths of prompt and answer are needed.
        most: lines that are read; None: all.

    Raises:
        SpecError: it cannot be read, it has not the columns, or a line is no request.
    """
    try:
        with near(name, place).open(encoding="utf-8-sig", newline="") as file:
            return _collect(_lines(file, name, place, tokens), name, place, tokens, most)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        message = f"the trace '{name}' cannot be read: {error.__class__.__name__}"
        raise SpecError.of(place, message, _HINT) from error


# ---- forms ----


def _lines(file: Iterable[str], name: str, place: Place, tokens: bool) -> Iterator[Line]:
    rows = iter(file)
    first = next(rows, "")
    if first.lstrip().startswith("{"):
        yield from _objects(first, rows, name, place)
        return
    columns = [each.strip() for each in next(csv.reader([first]), [])]
    form = next((found for found in _FORMS if set(found[:1] + (found[1:] if tokens else ())) <= set(columns)), None)
    if form is None:
        needed = "arrival, prompt and output" if tokens else "arrival"
        message = f"the trace '{name}' has not the column{'s' if tokens else ''} {needed}"
        raise SpecError.of(place, message, "its first line names them; arrival in seconds, the others in tokens")
    reader = csv.reader(rows)
    at = [columns.index(each) if each in columns else -1 for each in form]
    for row in reader:
        if any(cell.strip() for cell in row):
            yield Line(reader.line_num + 1, *(row[each] if 0 <= each < len(row) else None for each in at))


def _objects(first: str, rows: Iterator[str], name: str, place: Place) -> Iterator[Line]:
    text, number = first, 1
    while text:
        if text.strip():
            try:
                entry = json.loads(text)
                seconds = float(entry["timestamp"]) / 1000
            except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
                raise _no_request(name, number, text, place) from error
            yield Line(number, seconds, entry.get("input_length"), entry.get("output_length"), entry.get("hash_ids") or ())
        text, number = next(rows, ""), number + 1


_FORMS: Final = (  # columns of the arrival, of the prompt's tokens and the answer's
    ("arrival", "prompt", "output"),
    ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    ("Timestamp", "Request tokens", "Response tokens"),
)


# ---- lines to columns ----


def _collect(lines: Iterable[Line], name: str, place: Place, tokens: bool, most: int | None) -> Trace:
    came: list[int] = []
    numbers, prompts, outputs, blocks, begins = (array("q") for _ in range(5))
    begins.append(0)
    first: datetime | float | None = None
    for line in lines:
        if most is not None and len(came) >= most:
            break
        try:
            seconds, first = _instant(line.arrival, first)
            prompt, output = (_count(each, tokens) for each in (line.prompt, line.output))
            blocks.extend(_block(block) for block in line.blocks)
        except (TypeError, ValueError, OverflowError) as error:
            shown = ", ".join(str(each) for each in (line.arrival, line.prompt, line.output))
            raise _no_request(name, line.number, shown, place) from error
        came.append(ticks.femtoseconds(seconds))
        numbers.append(line.number)
        prompts.append(prompt)
        outputs.append(output)
        begins.append(len(blocks))
        if len(came) > MOST:
            raise SpecError.of(place, f"the trace '{name}' has more than {MOST:,} requests", "requests: fewer of them")
    if not came:
        raise SpecError.of(place, f"the trace '{name}' has no request", _HINT)
    return _sorted(came, numbers, prompts, outputs, blocks, begins)


def _sorted(came: list[int], *columns: array[int]) -> Trace:
    """In order of arrival; those that come at once in order of the file."""
    numbers, prompts, outputs, blocks, begins = (np.array(column, np.int64) for column in columns)
    block = HASHED if len(blocks) else 0
    if all(earlier <= later for earlier, later in pairwise(came)):
        return Trace(ticks.column(came), numbers, prompts, outputs, blocks, begins, block)
    order = sorted(range(len(came)), key=came.__getitem__)
    many = np.diff(begins)[order]
    ids = np.concatenate([blocks[begins[each] : begins[each + 1]] for each in order])
    starts = np.concatenate(([0], np.cumsum(many)))  # count
    arrival = ticks.column([came[each] for each in order])
    return Trace(arrival, numbers[order], prompts[order], outputs[order], ids, starts, block)


def _instant(written: Any, first: datetime | float | None) -> tuple[float, datetime | float]:
    """(seconds after the load began, the instant of the first line); a date counts from the first, and all are alike."""
    at: datetime | float
    try:
        at = seconds = float(written)
    except ValueError:
        date = datetime.fromisoformat(_to_microseconds(written.strip()))
        at = date if date.tzinfo else date.replace(tzinfo=UTC)
        seconds = (at - (first if isinstance(first, datetime) else at)).total_seconds()
    first = at if first is None else first
    if not 0 <= seconds < 1e9 or type(at) is not type(first):
        raise ValueError(written)
    return seconds, first


def _to_microseconds(date: str) -> str:
    """A date without the digits that Python does not read (Azure writes seven)."""
    head, point, tail = date.partition(".")
    digits = next((at for at, letter in enumerate(tail) if not letter.isdigit()), len(tail))
    return f"{head}{point}{tail[: min(digits, 6)].ljust(6, '0')}{tail[digits:]}" if point else date


def _count(written: Any, needed: bool) -> int:
    if written is None and not needed:
        return 0
    number = float(written)
    if not (1 <= number < _MANY or (not needed and number == 0)) or not number.is_integer():
        raise ValueError(written)
    return int(number)


def _block(written: Any) -> int:
    if not isinstance(written, int) or not -(2**63) <= written < 2**63:
        raise ValueError(written)
    return written


def _no_request(name: str, number: int, text: str, place: Place) -> SpecError:
    hint = "seconds, tokens of the prompt, tokens of the answer: 12.5, 600, 250"
    return SpecError.of(place, f"line {number} of the trace '{name}' is no request: {text.strip()[:60]}", hint)
