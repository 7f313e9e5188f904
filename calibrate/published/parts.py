"""Parts of the library and tables of measurements, as the topics need them."""

from __future__ import annotations

import csv
import functools
from pathlib import Path
from typing import Any, TypeVar

from hwsim import api
from hwsim.machine import Machine
from hwsim.spec import find, read

Model = TypeVar("Model")


@functools.cache
def alone(kind: str, name: str) -> Machine:
    """A machine that consists of one part of the library, called `it`.

    >>> alone("gpu", "d2l-gpu").device("it").kind
    'gpu'
    """
    return api.load_machine(f"hwsim: machine/1\nparts: {{it: {{kind: {kind}, use: {name}}}}}\n")


def part(model: type[Model], name: str) -> Model:
    """The part of the library called that, with all its numbers.

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


def title(kind: str, name: str) -> str:
    """What a reader calls a part of the library: "NVIDIA Tesla K20".

    >>> title("gpu", "k20")
    'NVIDIA Tesla K20'
    """
    return read(find(kind, name)).text("name") or name


def table(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
