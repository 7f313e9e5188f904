"""Measurements distributed with hwsim, and the list of all sources.

    python -m published.shipping --data DIR    write `data/` and `data/sources.yaml` in this package

A figure is distributed if the licence of its source allows it, with its source and in a compact table. The list contains for
every source its number of figures, licence, location, and whether its figures are distributed.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import lzma
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hwsim.formats import format_quantity
from published.parts import declared, table

SHIPPED: Final = Path(__file__).parent / "data"
LICENCES: Final[Mapping[str, str]] = declared("shipping")["licences"]
KNOWN: Final[Mapping[str, str]] = declared("shipping")["known"]
WHOLE: Final[Mapping[str, str]] = declared("shipping")["whole"]
UNUSED: Final = ("inferred_fields", "op_name", "message_size_unit")  # columns that no topic reads
MANY: Final = 12  # number of files above which the list contains folders
HEADER: Final = declared("shipping")["header"]


@dataclass(slots=True)
class Source:
    """One source: number of figures, of unflagged figures, their tables, and the original locations."""

    rows: int = 0
    good: int = 0
    tables: set[str] = field(default_factory=set)
    at: set[str] = field(default_factory=set)


def licence(source: str) -> str:
    """Return the licence under which a source may be distributed; "" if it is unknown or forbids it.

    >>> licence("microsoft/vidur:data/profiling/compute@7d47"), licence("te42kyfo/gpu-benches:gpu-l2-cache@1c36")
    ('MIT', '')
    """
    return next((name for prefix, name in LICENCES.items() if source.startswith(prefix)), "")


def name_of(source: str) -> str:
    """Return the name of a source in the list: the longest name with a licence, or else its repository.

    >>> name_of("microsoft/vidur:data/profiling/compute@7d47"), name_of("Narayanan et al. 2021 Table 2; cli99")
    ('microsoft/vidur', 'Narayanan et al. 2021 Table 2')
    """
    known = [prefix for prefix in (*LICENCES, *KNOWN) if source.startswith(prefix)]
    return max(known, key=len, default=re.sub(r"[:;@(].*", "", source).strip())


def tables(data: Path) -> Iterator[Path]:
    """Return the tables of measurements in a folder."""
    yield from sorted(data.glob("validation/*.csv"))
    yield from sorted(data.glob("validation/serving/aic_*.csv"))
    yield from sorted(data.glob("oracles/llmcompass_*.csv"))
    yield from sorted(data.glob("oracles/gpubenches_*.csv"))
    yield from sorted(data.glob("oracles/kerncraft_*.csv"))
    yield from sorted(data.glob("oracles/d2l_*.csv"))


def source_of(path: str, row: Mapping[str, str]) -> str:
    """Return the source of a row."""
    return next((source for prefix, source in WHOLE.items() if path.startswith(prefix)), row.get("source", ""))


def write(data: Path, to: Path = SHIPPED) -> None:
    """Write the tables and the list."""
    found: dict[str, Source] = {}
    written = {}
    for path in tables(data):
        name = str(path.relative_to(data))
        kept = []
        for row in table(path):
            at = source_of(name, row)
            if not at:
                continue
            own = found.setdefault(name_of(at), Source())
            good = not row.get("flag")
            own.rows, own.good = own.rows + 1, own.good + good
            own.tables.add(name)
            own.at.add(at)
            if good and licence(at):
                kept.append(row)
        if kept:
            written[name] = _packed(kept)
    for old in to.glob("**/*.xz"):
        old.unlink()
    for name, packed in written.items():
        file = to / f"{name}.xz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(packed)
    (to / "sources.yaml").write_text(_listed(found, written), encoding="utf-8")


def _packed(rows: list[dict[str, str]]) -> bytes:
    columns = [name for name in rows[0] if name not in UNUSED and (name == "flag" or any(row[name] for row in rows))]
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return lzma.compress(out.getvalue().encode(), preset=9 | lzma.PRESET_EXTREME)


def _listed(found: Mapping[str, Source], written: Mapping[str, bytes]) -> str:
    out = [HEADER + "sources:"]
    for name, source in sorted(found.items(), key=lambda item: item[0].lower()):
        says = licence(name) or KNOWN.get(name, "")
        out += [
            f"  - name: {_quoted(name)}",
            f"    licence: {says or 'not known'}",
            f"    here: {'true' if licence(name) else 'false'}",
            f"    rows: {source.rows}",
            f"    unflagged: {source.good}",
            f"    tables: [{', '.join(sorted(source.tables))}]",
            "    at:",
            *(f"      - {_quoted(place)}" for place in sorted(_folded(source.at))),
        ]
    out.append("tables:")
    for name, packed in sorted(written.items()):
        digest = hashlib.sha256(packed).hexdigest()
        out.append(f"  {name}.xz: {{bytes: {len(packed)}, sha256: {digest}}}")
    return "\n".join(out) + "\n"


def _folded(places: set[str]) -> set[str]:
    """Return files, or their folders if there are many."""
    while len(places) > MANY and len(shorter := {re.sub(r"/[^/@]*(?=@|$)", "", place) for place in places}) < len(places):
        places = shorter
    return places


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main() -> None:
    """Write all figures that may be distributed."""
    parser = argparse.ArgumentParser(prog="python -m published.shipping", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HWSIM_REFERENCE_DATA"), required=False)
    said = parser.parse_args()
    if said.data is None:
        parser.error("--data DIR is needed, or $HWSIM_REFERENCE_DATA")
    write(said.data)
    size = sum(file.stat().st_size for file in SHIPPED.glob("**/*.xz"))
    print(f"{SHIPPED}: {format_quantity(size, 'B')}")


if __name__ == "__main__":
    main()
