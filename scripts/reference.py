"""Write docs/reference.md: every key of every file, from the dataclasses that read them.  --check: only compare.

Keys that kinds share are said once, in the table of what they have in common. A mapping inside another has a table of its own,
once, in the last section; links lead there.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from hwsim.devices.kind import Device
from hwsim.links.kind import LinkKind
from hwsim.machine.schema import LinkEntry, PartEntry
from hwsim.results.invariants import checked_text
from hwsim.spec import FieldPlan, plan
from hwsim.spec.decode import title
from scripts.reference_sections import FAMILIES, HEAD, HEADED, SHARED, headings
from scripts.reference_values import Values, anchor, classes, documented

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
ENTRIES: Final[dict[type, str]] = {
    PartEntry: FAMILIES[Device][0],
    LinkEntry: FAMILIES[LinkKind][0],
}  # the tables to which the keys of a family are added
ONCE: Final = ("hwsim", "name", "notes", "source", "ref")  # of these, the ones that say no more than everywhere
LEAST: Final = 3  # kinds that have a key alike, for it to be said once


class Reference:
    """The tables, with what each family of kinds shares."""

    def __init__(self) -> None:
        self.given = [(cls, heading) for cls, heading in headings() if cls is not None]
        self.values = Values(dict(self.given) | HEADED)
        self.own = {cls: {field.key: self._row(cls, field) for field in plan(cls)} for cls, _ in self.given}
        self.kinds = [cls for cls, _ in self.given if cls not in FAMILIES]
        self.shared: dict[type, list[str]] = {}
        self.taken: dict[type, list[type]] = {cls: [] for cls in self.kinds}
        for family in FAMILIES:
            self._share(family)

    def _share(self, family: type) -> None:
        """Say once what most kinds of a family have alike."""
        kinds = [cls for cls in self.kinds if issubclass(cls, family)]
        often = Counter(row for cls in kinds for row in self.own[cls].values())
        rows = []
        for row, count in often.items():
            key = next(key for cls in kinds for key, own_row in self.own[cls].items() if own_row == row)
            all_have = all(key in {field.key for field in plan(cls)} for cls in kinds)
            if count < LEAST or 2 * count < len(kinds) or not all_have:
                continue
            rows.append(row)
            for cls in kinds:
                if self.own[cls].get(key) == row:
                    del self.own[cls][key]
        self.shared[family] = rows
        for cls in kinds if rows else ():
            self.taken[cls].append(family)

    def _row(self, cls: type, each: FieldPlan) -> str:
        return self.values.row(cls, each)

    def lines(self) -> Iterator[str]:
        """The whole page."""
        yield HEAD
        inside: dict[type, None] = {}
        for cls, heading in headings():
            if cls is None:
                yield heading
            elif cls in FAMILIES:
                yield from self._table(heading, cls, self.shared[cls])
            else:
                inside |= dict.fromkeys(classes(plan(cls)))
                family = next((base for base, (name, _) in FAMILIES.items() if ENTRIES.get(cls) == name), None)
                yield from self._table(heading, cls, [*self.own[cls].values(), *(self.shared[family] if family else ())])
        yield "## Nested mappings\n"
        shown: set[type] = set(HEADED)
        while rest := [cls for cls in inside if cls not in shown]:
            for cls in rest:
                shown.add(cls)
                inside |= dict.fromkeys(classes(plan(cls)))
                yield from self._table(f"Mapping: {title(cls)}", cls, [self._row(cls, field) for field in plan(cls)])

    def _table(self, heading: str, cls: type, rows: list[str]) -> Iterator[str]:
        yield f"### {heading}\n"
        doc = " ".join((inspect.getdoc(cls) or "").split("\n\n", 1)[0].split())
        if doc and not doc.startswith(cls.__name__ + "("):
            yield f"{doc}\n"
        once = [field.key for field in plan(cls) if documented(field, ONCE)] if cls not in FAMILIES else []
        rows = [row for row in rows if not any(row.startswith(f"| `{key}` |") for key in once)]
        if rows:
            yield "| key | value | default | meaning |\n|---|---|---|---|"
            yield from rows
            yield ""
        also = [f"`{key}`" for key in once]
        families = [f"[{words}](#{anchor(name)})" for name, words in (FAMILIES[base] for base in self.taken.get(cls, ()))]
        if families:
            yield f"Also the keys of {_and(families)}.\n"
        if also:
            yield f"Also the [common key{'s' * (len(also) > 1)}](#{SHARED}) {_and(also)}.\n"


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def page() -> str:
    """The whole page."""
    return "\n".join(Reference().lines()) + "\n"


def main() -> int:
    """Write the page, or say that it is out of date."""
    text: Any = checked_text(page())
    if "--check" in sys.argv[1:]:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
