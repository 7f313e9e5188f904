"""Request traces: CSV with own columns, the CSV traces of Azure and BurstGPT, and Mooncake JSONL with prefix blocks.

| file | columns |
|---|---|
| CSV | arrival (seconds); for a model also prompt and output (tokens) |
| Azure CSV | TIMESTAMP (a date), ContextTokens, GeneratedTokens |
| BurstGPT CSV | Timestamp (seconds), Request tokens, Response tokens |
| Mooncake JSONL | timestamp (milliseconds), input_length, output_length, hash_ids (one per 512 tokens) |

**Source**: Azure/AzurePublicDataset (2023, 2024), HPMLL/BurstGPT, kvcache-ai/Mooncake: FAST25-release/traces.
"""

from __future__ import annotations

import csv
import json
from array import array
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.records import dataclass
from hwsim.spec import Place, SpecError
from hwsim.ticks import Column
from hwsim.workload.load.keys import near

MAX_TRACE_REQUESTS: Final = 5_000_000  # requests of a trace
HASHED: Final = 512  # tokens per block in a Mooncake trace
_MANY: Final = 10**9  # upper limit of a token count
_HINT: Final = "a CSV file with the columns arrival, prompt, output; an Azure or BurstGPT CSV; or Mooncake JSONL"


class TraceRecord(NamedTuple):
    """A line of a trace as read: line number, arrival, tokens (None if the file has none) and ids of the prompt's blocks."""

    number: int
    arrival: Any
    prompt: Any
    output: Any
    blocks: Any = ()


@dataclass(frozen=True, slots=True)
class RequestTrace:
    """A trace: the requests of a file in order of arrival, as columns.

    Args:
        arrival: arrival times (fs).
        lines: line numbers in the file.
        prompt, output: token counts; 0 if the file has none.
        blocks: ids of the blocks of all prompts, concatenated.
        begins: index of the first block of each prompt, and the total.
        block: tokens per block; 0: the file has no blocks.
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
        """Return the ids of the blocks of a prompt."""
        ids: list[int] = self.blocks[self.begins[request] : self.begins[request + 1]].tolist()
        return ids


def read_trace(name: str, place: Place, *, tokens: bool, most: int | None = None, share: int = 1) -> RequestTrace:
    """Read the requests of a trace file.

    Args:
        name: path of the file, relative to the workload file.
        place: position of the name in the workload file.
        tokens: whether token counts are required.
        most: maximum number of requests to read; None: all.
        share: only every n-th request is read.

    Raises:
        SpecError: the file cannot be read, a column is missing, or a line is invalid.
    """
    try:
        with near(name, place).open(encoding="utf-8-sig", newline="") as file:
            return _collect(islice(_lines(file, name, place, tokens), 0, None, share), name, place, tokens, most)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        message = f"the trace '{name}' cannot be read: {error.__class__.__name__}"
        raise SpecError.of(place, message, _HINT) from error


# ---- forms ----


def _lines(file: Iterable[str], name: str, place: Place, tokens: bool) -> Iterator[TraceRecord]:
    rows = iter(file)
    first = next(rows, "")
    if first.lstrip().startswith("{"):
        yield from _objects(first, rows, name, place)
        return
    columns = [column.strip() for column in next(csv.reader([first]), [])]
    form = next((form for form in _FORMS if set(form[:1] + (form[1:] if tokens else ())) <= set(columns)), None)
    if form is None:
        needed = "arrival, prompt and output" if tokens else "arrival"
        message = f"the trace '{name}' lacks the column{'s' if tokens else ''} {needed} in its first line"
        raise SpecError.of(place, message, "arrival in seconds, prompt and output in tokens")
    reader = csv.reader(rows)
    indices = [columns.index(column) if column in columns else -1 for column in form]
    for row in reader:
        if any(cell.strip() for cell in row):
            yield TraceRecord(reader.line_num + 1, *(row[index] if 0 <= index < len(row) else None for index in indices))


def _objects(first: str, rows: Iterator[str], name: str, place: Place) -> Iterator[TraceRecord]:
    text, number = first, 1
    while text:
        if text.strip():
            try:
                entry = json.loads(text)
                seconds = float(entry["timestamp"]) / 1000
            except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
                raise _no_request(name, number, text, place) from error
            yield TraceRecord(number, seconds, entry.get("input_length"), entry.get("output_length"), entry.get("hash_ids") or ())
        text, number = next(rows, ""), number + 1


_FORMS: Final = (  # columns of arrival, prompt tokens and output tokens
    ("arrival", "prompt", "output"),
    ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    ("Timestamp", "Request tokens", "Response tokens"),
)


# ---- lines to columns ----


def _collect(lines: Iterable[TraceRecord], name: str, place: Place, tokens: bool, most: int | None) -> RequestTrace:
    came: list[int] = []
    numbers, prompts, outputs, blocks, begins = (array("q") for _ in range(5))
    begins.append(0)
    first: datetime | float | None = None
    for line in lines:
        if most is not None and len(came) >= most:
            break
        try:
            seconds, first = _instant(line.arrival, first)
            prompt, output = (_count(text, tokens) for text in (line.prompt, line.output))
            blocks.extend(_block(block) for block in line.blocks)
        except (TypeError, ValueError, OverflowError) as error:
            shown = ", ".join(str(value) for value in (line.arrival, line.prompt, line.output))
            raise _no_request(name, line.number, shown, place) from error
        came.append(ticks.femtoseconds(seconds))
        numbers.append(line.number)
        prompts.append(prompt)
        outputs.append(output)
        begins.append(len(blocks))
        if len(came) > MAX_TRACE_REQUESTS:
            raise SpecError.of(
                place, f"the trace '{name}' has more than {MAX_TRACE_REQUESTS:,} requests", f"requests: {MAX_TRACE_REQUESTS}"
            )
    if not came:
        raise SpecError.of(place, f"the trace '{name}' contains no requests", _HINT)
    return _sorted(came, numbers, prompts, outputs, blocks, begins)


def _sorted(came: list[int], *columns: array[int]) -> RequestTrace:
    """The trace in order of arrival; simultaneous requests keep their order in the file."""
    numbers, prompts, outputs, blocks, begins = (np.array(column, np.int64) for column in columns)
    block = HASHED if len(blocks) else 0
    if all(earlier <= later for earlier, later in pairwise(came)):
        return RequestTrace(ticks.column(came), numbers, prompts, outputs, blocks, begins, block)
    order = sorted(range(len(came)), key=came.__getitem__)
    block_counts = np.diff(begins)[order]
    ids = np.concatenate([blocks[begins[index] : begins[index + 1]] for index in order])
    starts = np.concatenate(([0], np.cumsum(block_counts)))  # count
    arrival = ticks.column([came[index] for index in order])
    return RequestTrace(arrival, numbers[order], prompts[order], outputs[order], ids, starts, block)


def _instant(written: Any, first: datetime | float | None) -> tuple[float, datetime | float]:
    """(seconds since the start of the load, time of the first line); dates count from it, and formats may not be mixed."""
    time: datetime | float
    try:
        time = seconds = float(written)
    except ValueError:
        date = datetime.fromisoformat(_to_microseconds(written.strip()))
        time = date if date.tzinfo else date.replace(tzinfo=UTC)
        seconds = (time - (first if isinstance(first, datetime) else time)).total_seconds()
    first = time if first is None else first
    if not 0 <= seconds < 1e9 or type(time) is not type(first):
        raise ValueError(written)
    return seconds, first


def _to_microseconds(date: str) -> str:
    """A date with six digits after the point, as Python requires (Azure writes seven)."""
    head, point, tail = date.partition(".")
    digits = next((index for index, letter in enumerate(tail) if not letter.isdigit()), len(tail))
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
    hint = "arrival in seconds, prompt tokens, output tokens: 12.5, 600, 250"
    return SpecError.of(place, f"line {number} of the trace '{name}' is not a request: {text.strip()[:60]}", hint)
