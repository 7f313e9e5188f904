"""Sliders for the numbers of both files: path for `--set`, and possible values as texts with unit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

from hwsim.records import dataclass
from hwsim.spec import Tree
from hwsim.units import UnitError, parse
from hwsim.views.explain.numbers import FileNumbers

Kind = Literal["count", "quantity", "share", "real"]
Group = Literal["parameters", "machine", "workload", "parts"]

MOST: Final = 600
FEW: Final = 16  # count up to which all whole numbers are values
LATEST: Final = 6  # latest generation of a link
DOUBLED: Final = frozenset({"lanes", "bits"})  # keys whose counts are powers of two
OCTAVES: Final = 3  # range of a quantity below and above its own value
STEPS: Final = 10  # per octave
ROUND: Final = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)  # round values per decade
_NOT: Final = frozenset({
    "hwsim", "name", "source", "ref", "notes", "note", "expect", "points", "ci95", "spread", "seed", "index", "use", "kind",
})  # fmt: skip
_STRUCTURE: Final = frozenset({"program", "programs", "repeat", "do", "services"})  # keys that say nothing of a number
_WRITTEN: Final = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*?)\s*")


@dataclass(frozen=True, slots=True)
class Slider:
    """A slider of a number.

    Args:
        path: path for `--set`.
        label: label on the page.
        group: parameters, number of the machine or workload file, or number of a part of the library.
        unit: unit in the file; "" for none.
        text: value in the file.
        kind: kind of number.
        values: possible values in order, as texts for `--set`.
        numbers: possible values in the unit.
        at: index of the value in the file.
        log: whether an axis of the values is logarithmic.
        source: source of the value.
    """

    path: str
    label: str
    group: Group
    unit: str
    text: str
    kind: Kind
    values: tuple[str, ...]
    numbers: tuple[float, ...]
    at: int
    log: bool
    source: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the slider for the page."""
        keys = ("path", "label", "group", "unit", "text", "kind", "at", "log", "source")
        found = {key: getattr(self, key) for key in keys}
        return found | {"values": list(self.values), "numbers": list(self.numbers), "value": self.numbers[self.at]}


def sliders(machine: Tree, workload: Tree) -> tuple[Slider, ...]:
    """Return the sliders of both files: parameters, then numbers of the files, then numbers of library parts."""
    by_path: dict[str, Slider] = {}
    for slider in _all(machine, workload):
        if slider is not None:
            by_path.setdefault(slider.path, slider)
    order: dict[Group, int] = {"parameters": 0, "workload": 1, "machine": 2, "parts": 3}
    return tuple(sorted(by_path.values(), key=lambda slider: order[slider.group])[:MOST])


def _all(machine: Tree, workload: Tree) -> Iterator[Slider | None]:
    for name, value in _let(workload):
        yield _slider(name, name, "parameters", value)
    both = {name for name, _ in _let(workload)}
    for name, value in _let(machine):
        path = f"let.{name}" if name not in both else f"machine.let.{name}"
        yield _slider(path, name, "parameters", value)
    for path, label, value in _inside(workload.without("let"), "workload", ""):
        yield _slider(path, label, "workload", value)
    parts = machine.get("parts")
    for name, part in parts.items() if parts is not None else ():
        if (count := part.get("count")) is not None:
            yield _slider(f"machine.{name}.count", f"number of {name}", "machine", count)
    own_paths = set(_own(machine))
    for number in FileNumbers(machine).everything():
        group: Group = "machine" if number.path in own_paths else "parts"
        yield made(number.path, f"{number.part} {number.key.replace('.', ' ')}", group, number.written, str(number.source))


def _let(tree: Tree) -> Iterable[tuple[str, Tree]]:
    let = tree.get("let")
    return let.items() if let is not None else ()


def _inside(tree: Tree, path: str, label: str) -> Iterator[tuple[str, str, Tree]]:
    """Yield (path, label, value) of every scalar in a tree."""
    if tree.is_mapping and tree.get("value") is None:
        for key, value in tree.items():
            if key not in _NOT and "." not in key:
                called = "" if key in _STRUCTURE else (value.text("name") if value.is_mapping else None) or key
                yield from _inside(value, f"{path}.{key}", f"{label} {called}")
    elif tree.is_list:
        for index, value in enumerate(tree.elements()):
            if value.is_mapping:
                yield from _inside(value, f"{path}.{index}", label)
    else:
        yield path, " ".join(label.split()), tree


def _own(machine: Tree) -> Iterator[str]:
    """Yield the paths of the numbers in the machine file itself."""
    parts, links = machine.get("parts"), machine.get("links")
    for name, part in parts.items() if parts is not None else ():
        yield from (path for path, _, _ in _inside(part, f"machine.{name}", ""))
    if links is None:
        return
    if links.is_mapping:
        for name, link in links.items():
            yield from (path for path, _, _ in _inside(link, f"machine.links.{name}", ""))
        return
    called = [element.text("name") or element.text("kind") or "" for element in links.elements()]
    for index, link in enumerate(links.elements()):
        name = called[index] if called.count(called[index]) == 1 else str(index)
        yield from (path for path, _, _ in _inside(link, f"machine.links.{name}", ""))


def _slider(path: str, label: str, group: Group, tree: Tree) -> Slider | None:
    inner = tree.get("value") if tree.is_mapping else None
    value = (inner or tree).value
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    source = tree.get("source") if tree.is_mapping else None
    return made(path, label, group, str(value), "" if source is None else str(source.value))


def made(path: str, label: str, group: Group, text: str, source: str = "") -> Slider | None:
    """Return the slider of a number in a file; None if the text is no number.

    >>> made("n", "n", "parameters", "4").values[:5], made("n", "n", "parameters", "4").at
    (('1', '2', '3', '4', '5'), 3)
    >>> made("a", "rate", "machine", "16 GB/s").values[::15]
    ('2 GB/s', '5.66 GB/s', '16 GB/s', '45.3 GB/s', '128 GB/s')
    """
    parts = _WRITTEN.fullmatch(text)
    if parts is None:
        return None
    try:
        quantity = parse(text)
    except UnitError:
        return None
    number, unit = float(parts[1]), parts[2]
    if not math.isfinite(number) or number < 0 or not (number or (quantity.dimension.plain and not unit)):
        return None
    is_whole = not unit and re.fullmatch(r"\d+", parts[1]) is not None
    if is_whole:
        kind: Kind = "count"
        values = _counts(int(number), path.rpartition(".")[2])
    elif unit == "%" or (not unit and 0 < number < 1):
        kind = "share"
        step = 1.0 if unit == "%" else 0.01
        values = [step * place for place in range(1, 101)] if number <= 100 * step else _octaves(number)
    else:
        kind, values = ("quantity" if unit else "real"), _octaves(number)
    numbers = sorted({_rounded(value) for value in values} | {number})
    at = numbers.index(number)
    texts = [text.strip() if place == at else f"{_digits(value)} {unit}".strip() for place, value in enumerate(numbers)]
    log = kind != "share" and numbers[0] > 0 and numbers[-1] / numbers[0] > FEW
    return Slider(path, label.replace("_", " "), group, unit, text.strip(), kind, tuple(texts), tuple(numbers), at, log, source)


def _counts(count: int, key: str) -> list[float]:
    """Return whole numbers around a count: all up to 16, else powers of two, simple multiples, or round numbers."""
    if key == "gen":
        return [float(index) for index in range(1, LATEST + 1)]
    if key in DOUBLED and count & (count - 1) == 0:
        return [2.0**power for power in range(max(count.bit_length() + 2, 5))]
    if count <= FEW:
        return [float(value) for value in range(0 if count <= 1 else 1, max(FEW, 2 * count) + 1)]
    if count & (count - 1) == 0:
        return [2.0**power for power in range(count.bit_length() + 3)]
    if count % 8 == 0 and count % 1000:
        return [count * part / 8 for part in (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)]
    decades = range(math.floor(math.log10(count)) - 2, math.floor(math.log10(count)) + 2)
    around = (value * 10.0**decade for decade in decades for value in ROUND)
    return [value for value in around if count / 20 <= value <= count * 10 and value.is_integer()]


def _octaves(own: float) -> list[float]:
    return [own * 2.0 ** (place / STEPS) for place in range(-OCTAVES * STEPS, OCTAVES * STEPS + 1)]


def _rounded(value: float) -> float:
    return value if value.is_integer() and abs(value) < 1e15 else float(f"{value:.3g}")


def _digits(value: float) -> str:
    """Return a number as text, without an exponent if it is a whole number of few digits."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.12g}"
