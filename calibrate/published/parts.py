"""Parts of the library and tables of measurements for the topics."""

from __future__ import annotations

import csv
import functools
import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

from hwsim import api
from hwsim.machine import Machine

Model = TypeVar("Model")


@functools.cache
def alone(kind: str, name: str) -> Machine:
    """Return a machine that consists of one part of the library, called `it`.

    >>> alone("gpu", "d2l-gpu").device("it").kind
    'gpu'
    """
    return api.load_machine(f"hwsim: machine/1\nparts: {{it: {{kind: {kind}, use: {name}}}}}\n")


def part(model: type[Model], name: str) -> Model:
    """Return the part of the library with this name.

    >>> from hwsim.devices import Gpu
    >>> part(Gpu, "d2l-gpu").lanes
    16

    Raises:
        TypeError: it is another kind of part.
    """
    kind: Any = getattr(model, "kind")  # noqa: B009 (every device has one; the type variable does not say so)
    found = alone(str(kind), name).device("it").model
    if not isinstance(found, model):
        raise TypeError(f"{name} is a {type(found).__name__}, not a {model.__name__}")
    return found


@functools.cache
def declared(topic: str) -> Mapping[str, Any]:
    """Return a module's handwritten data from its file in `declared/`: names of parts, texts, and figures that are in no table.

    >>> declared("bert")["parts"]["NVIDIA T4"]
    't4'
    """
    found: Mapping[str, Any] = yaml.safe_load((Path(__file__).parent / "declared" / f"{topic}.yaml").read_text("utf-8"))
    return found


FIGURES: Final = frozenset({"value", "latency_ms"})  # columns with measured values
read_figures: set[tuple[str, int]] | None = None  # (table, row) of every figure read, if recorded


def table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file, or of its xz-compressed version, in which empty columns are omitted."""
    packed = path.with_name(f"{path.name}.xz")
    if path.exists() or not packed.exists():
        with path.open(encoding="utf-8", newline="") as file:
            found = list(csv.DictReader(file))
        return [_Counted(row, path.name, index) for index, row in enumerate(found)] if read_figures is not None else found
    with lzma.open(packed, "rt", encoding="utf-8", newline="") as file:
        return [_Packed(row) for row in csv.DictReader(file)]


class _Packed(dict[str, str]):
    """A row of a compressed table; omitted columns are empty."""

    def __missing__(self, _: str) -> str:
        return ""


class _Counted(dict[str, str]):
    """A row that records when its figure is read."""

    def __init__(self, row: dict[str, str], path: str, at: int) -> None:
        super().__init__(row)
        self.place = path, at

    def __getitem__(self, key: str) -> str:
        if key in FIGURES and read_figures is not None:
            read_figures.add(self.place)
        return super().__getitem__(key)
