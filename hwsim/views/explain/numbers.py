"""Numbers in the files of a run that `--set` can change: path, unit, source, and the value twice as good.

A time or a length is better halved, a rate better doubled. For sizes, shares and counts it depends on the case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from hwsim.demand import Capacity
from hwsim.formats import precise
from hwsim.origins import GIVEN, Origin
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Tree, resolve
from hwsim.spec.numbers import sources
from hwsim.units import Quantity

BETTER: Final[dict[str, Literal["halved", "doubled"]]] = {
    "s": "halved", "B/s": "doubled", "FLOP/s": "doubled", "1/s": "doubled", "T/s": "doubled",
}  # fmt: skip
BY_KEY: Final[dict[str, Literal["halved", "doubled"]]] = {
    "rpm": "doubled", "density": "doubled", "ipc": "doubled", "per_cycle": "doubled", "cycles": "halved", "mispredict": "halved",
    "length": "halved",
}  # fmt: skip
_WRITTEN: Final = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(\s*[^\d\s].*)?")
_NOT: Final = frozenset({"name", "notes", "source", "ref", "hwsim", "use", "kind", "note", "ci95", "points", "let", "count"})
_DIGITS: Final = "0123456789"


@dataclass(frozen=True, slots=True)
class FileNumber:
    """A number of a file.

    Args:
        part: part or link, such as `gpu`, `node.gpu` or `link slots`.
        key: path in the part, such as `memory.bandwidth`.
        path: path for `--set`.
        value: value in SI units.
        unit: symbol of the SI unit; "1" for a count.
        written: text in the file.
        source: source, as in derivations.
    """

    part: str
    key: str
    path: str
    value: float
    unit: str
    written: str
    source: Origin = GIVEN

    @property
    def better(self) -> Literal["halved", "doubled", ""]:
        """Change that improves it; "" if that depends on the case."""
        by_unit = BETTER.get(self.unit)
        return by_unit if by_unit is not None else BY_KEY.get(self.key.rpartition(".")[2], "")

    def times(self, factor: float) -> str:
        """Return the number times a factor as a text, in the unit of the file.

        >>> FileNumber("cpu", "clock", "machine.cpu.clock", 3.6e9, "1/s", "3.6 GHz").times(2)
        '7.2 GHz'
        """
        parts = _WRITTEN.fullmatch(self.written)
        if parts is None:
            return precise(self.value * factor, self.unit, 12)
        number, unit = parts.groups()
        return f"{float(number) * factor:.12g}{unit or ''}"

    @property
    def setting(self) -> tuple[str, str]:
        """Path and value of the number made twice as good."""
        return self.path, self.times(0.5 if self.better == "halved" else 2)


class FileNumbers:
    """The numbers of a machine's file by names of devices and links."""

    def __init__(self, machine: Tree) -> None:
        mistakes = Mistakes()
        self._tree = resolve(machine, mistakes)
        self._numbers: dict[str, tuple[FileNumber, ...]] = {}

    def of_device(self, name: str) -> tuple[FileNumber, ...]:
        """Return the numbers of a device's part; empty without one."""
        place = self._part(name.split("."))
        if place is None:
            return ()
        part, tree = place
        if part not in self._numbers:
            self._numbers[part] = tuple(_numbers(tree, part, f"machine.{part}"))
        return self._numbers[part]

    def of_path(self, part: str) -> tuple[FileNumber, ...]:
        """Return the numbers of a part by its name in the file, after `of_device` of one of its devices."""
        return self._numbers.get(part, ())

    def of_libraries(self, name: str) -> tuple[FileNumber, ...]:
        """Return the numbers of the communication library of a device's machine."""
        steps = name.split(".")[:-1]
        for depth in range(len(steps), -1, -1):
            place = self._part(steps[:depth]) if depth else ("", self._tree)
            if place is not None and (library := place[1].get("collectives")) is not None:
                inside = f"{place[0]}." if place[0] else ""
                return tuple(_numbers(library, f"{inside}collectives", f"machine.{inside}collectives"))
        return ()

    def kind(self, name: str) -> str:
        """Return the kind of a device's part; "" without one."""
        place = self._part(name.split("."))
        return (place[1].text("kind") or "") if place is not None else ""

    def of_link(self, capacity: Capacity) -> tuple[FileNumber, ...]:
        """Return the numbers of a capacity's link, declared in the innermost machine with both ends."""
        both = [end.split(".")[:-1] for end in capacity.ends]
        common = [a for a, b in zip(*both, strict=False) if a == b]
        for depth in range(len(common), -1, -1):
            place = self._part(common[:depth]) if depth else ("", self._tree)
            if place is not None and (numbers := self._link(*place, capacity.link)):
                return numbers
        return ()

    def everything(self) -> Iterator[FileNumber]:
        """Yield the numbers of all parts and links, including machines inside the machine."""
        yield from self._inside("", self._tree)

    def _inside(self, inside: str, tree: Tree) -> Iterator[FileNumber]:
        parts, links = tree.get("parts"), tree.get("links")
        for name, part in parts.items() if parts is not None else ():
            path = f"{inside}.{name}" if inside else name
            if part.get("parts") is not None:
                yield from self._inside(path, part)
            else:
                yield from self.of_device(path)
        named = [entry.text("name") or entry.text("kind") or "" for entry in links.elements()] if links is not None else []
        for name in dict.fromkeys(named):
            yield from (number for number in self._link(inside, tree, name) if number.key != "kind")

    def _part(self, steps: list[str]) -> tuple[str, Tree] | None:
        tree, path = self._tree, []
        for step in steps:
            parts = tree.get("parts")
            family = step if parts is not None and parts.get(step) is not None else step.rstrip(_DIGITS)
            below = parts.get(family) if parts is not None else None
            if below is None:
                return None
            tree = below
            path.append(family)
        return ".".join(path), tree

    def _link(self, inside: str, tree: Tree, name: str) -> tuple[FileNumber, ...]:
        """Return the file's numbers of every link with this name; they are changed together."""
        listed = tree.get("links")
        links = enumerate(listed.elements() if listed is not None else ())
        entries = [(place, entry) for place, entry in links if (entry.text("name") or entry.text("kind") or "") == name]
        numbers: list[FileNumber] = []
        for index, entry in entries:
            where = f"machine.{inside}." if inside else "machine."
            part = f"link {inside}.{name}" if inside else f"link {name}"
            path = f"{where}links.{name if len(entries) == 1 else index}"
            kind = FileNumber(part, "kind", f"{path}.kind", 0.0, "", entry.text("kind") or "")
            numbers += [kind, *_numbers(entry, part, path)]
        return tuple(numbers)


def _numbers(tree: Tree, part: str, path: str) -> Iterator[FileNumber]:
    origins = sources(tree)

    def walk(node: Tree, key: str) -> Iterator[FileNumber]:
        if node.is_mapping:
            if (value := node.get("value")) is not None:
                yield from walk(value, key)
                return
            for name, entry in node.items():
                if name not in _NOT:
                    yield from walk(entry, f"{key}.{name}" if key else name)
        elif (quantity := node.quantity) is not None and quantity.value:
            unit = "1/s" if quantity.dimension.unit == "Hz" else quantity.dimension.unit
            yield FileNumber(part, key, f"{path}.{key}", quantity.value, unit, scalar_text(node), origins.get(key) or GIVEN)

    yield from walk(tree, "")


def scalar_text(node: Tree) -> str:
    """Return the text of a scalar in a file."""
    value = node.value
    if isinstance(value, Quantity):
        return precise(value.value, value.dimension.unit, 12)
    return value if isinstance(value, str) else f"{value}"


def describe_changes(numbers: Iterable[FileNumber]) -> str:
    """Return the change of several numbers in words.

    >>> two = [FileNumber("gpu", f"flop.{name}", "", 1.0, "FLOP/s", "") for name in ("fp16", "fp32")]
    >>> describe_changes(two), describe_changes(two[:1])
    ('flop.* of gpu doubled', 'flop.fp16 of gpu doubled')
    """
    parts: dict[str, dict[str, list[FileNumber]]] = {}
    for number in numbers:
        parts.setdefault(number.part, {}).setdefault(number.better or "doubled", []).append(number)
    texts = []
    for part, changes in parts.items():
        suffixes = [f" of {part}", *[""] * (len(changes) - 1)]
        texts.append(", ".join(f"{', '.join(_keys(group))}{suffixes.pop(0)} {change}" for change, group in changes.items()))
    return "; ".join(texts)


def _keys(numbers: list[FileNumber]) -> list[str]:
    groups: dict[str, list[str]] = {}
    for number in numbers:
        above, _, _ = number.key.rpartition(".")
        groups.setdefault(above or number.key, []).append(number.key)
    return [keys[0] if len(set(keys)) == 1 else f"{above}.*" for above, keys in groups.items()]
