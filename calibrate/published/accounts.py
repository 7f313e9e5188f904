"""The page of sources: scored and unscored rows of each table, reasons, licences, and rows distributed with hwsim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from published import parts
from published.parts import declared
from published.shipping import licence, name_of, source_of

WHY: Final[Mapping[tuple[str, str], str]] = {(table, source): why for table, source, why in declared("accounts")["why"]}
SERVING: Final = "not in the scored sample"
HEAD: Final[str] = declared("accounts")["head"]


def page(data: Path, read: set[tuple[str, int]]) -> str:
    """Return the page in Markdown.

    Args:
        read: (table, row) of every figure that a topic read, see `published.parts`.
    """
    lines, total = [], [0, 0, 0]
    for path in sorted([*data.glob("validation/*.csv"), *data.glob("validation/serving/aic_*.csv")]):
        for source, (rows, flagged, scored, unscored) in _counted(data, path, read).items():
            total = [total[0] + rows, total[1] + flagged, total[2] + scored]
            why = f"{unscored:,}: {_why(path.stem, source)}" if unscored else ""
            says = licence(source)
            lines.append(
                f"| {path.stem} | {source} | {rows:,} | {flagged or ''} | {scored:,} | {why} | {says} | {'yes' if says else ''} |"
            )
    lines.append(f"| total | | {total[0]:,} | {total[1]:,} | {total[2]:,} | | | |")
    return HEAD + "\n".join(lines) + "\n"


def _counted(data: Path, path: Path, read: set[tuple[str, int]]) -> Mapping[str, tuple[int, int, int, int]]:
    """Return by source: all rows, flagged rows, scored rows, and unflagged rows that are not scored."""
    found: dict[str, list[int]] = {}
    for name, flagged, scored in _rows(data, path, read):
        own = found.setdefault(name, [0, 0, 0, 0])
        own[0] += 1
        own[1] += flagged
        own[2] += scored
        own[3] += not flagged and not scored
    return {name: (own[0], own[1], own[2], own[3]) for name, own in sorted(found.items(), key=lambda item: item[0].lower())}


def _rows(data: Path, path: Path, read: set[tuple[str, int]]) -> Iterator[tuple[str, bool, bool]]:
    for index, row in enumerate(parts.table(path)):
        name = name_of(source_of(str(path.relative_to(data)), row))
        yield name, bool(row.get("flag")), (path.name, index) in read


def _why(table: str, source: str) -> str:
    return WHY.get((table, source), SERVING if table.startswith("aic_") else "not used by any topic")
