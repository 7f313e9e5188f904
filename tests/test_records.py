"""`hwsim.records.dataclass` behaves as the decorator of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import gc
import inspect
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

import hwsim.records

Decorator = Callable[..., Any]
KINDS = [
    {"frozen": True, "slots": True},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "slots": True, "eq": False},
    {"frozen": True, "slots": True, "repr": False},
    {},
]


def point(decorator: Decorator, options: dict[str, Any]) -> type:
    @decorator(**options)
    class Point:
        """A point."""

        dimensions: ClassVar[int] = 2

        x: float
        y: float = 2.0
        names: list[str] = dataclasses.field(default_factory=list)
        hidden: int = dataclasses.field(default=3, compare=False, repr=False)
        derived: float = dataclasses.field(default=0.0, init=False)
        last: str = dataclasses.field(default="z", kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "derived", self.x + self.y)

    return Point


def answer(ask: Callable[[], Any]) -> Any:
    """The value, or the class and text of the error."""
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 (any error is part of the comparison)
        return type(error), str(error)


@pytest.mark.parametrize("options", KINDS, ids=lambda options: "-".join(options) or "plain")
def test_behaves_as_the_standard_dataclass(options: dict[str, Any]) -> None:
    def answers(decorator: Decorator) -> list[Any]:
        kind = point(decorator, options)
        first, equal, other = kind(x=1.0), kind(x=1.0, hidden=8), kind(x=3.0, names=["n"], last="a")
        return [
            first == equal, first != other, first == 1.0, answer(lambda: repr(other)) if options.get("repr", True) else "",
            answer(lambda: first < other),
            (first.derived, first.hidden, first.names is equal.names), kind.__hash__ is None, answer(lambda: len({first, equal})),
            answer(lambda: setattr(first, "x", 9.0)), answer(lambda: delattr(first, "y")), answer(kind),
            answer(lambda: kind(1.0, 2.0).derived), answer(lambda: kind(x=1.0, size=2)), answer(lambda: kind(1.0, x=1.0)),
            answer(lambda: kind(*range(9))), answer(lambda: kind(x=1.0, derived=2.0)), answer(lambda: kind(1.0, y=4.0).derived),
            answer(lambda: dataclasses.asdict(other)), dataclasses.replace(other, x=5.0).derived, hasattr(first, "__dict__"),
            [(entry.name, entry.kw_only) for entry in dataclasses.fields(kind)], vars(kind)["__match_args__"],
            list(inspect.signature(kind).parameters), copy.copy(other).last, copy.deepcopy(other).names,
            vars(kind)["__dataclass_params__"],
        ]  # fmt: skip

    for mine, standard in zip(answers(hwsim.records.dataclass), answers(dataclasses.dataclass), strict=True):
        assert repr(mine) == repr(standard)


def test_classes_of_one_field() -> None:
    @hwsim.records.dataclass(frozen=True, slots=True)
    class Frozen:
        """A value."""

        value: float

    @hwsim.records.dataclass(slots=True)
    class Open:
        """A value that may change."""

        value: float

    assert Frozen(1.0) == Frozen(1.0) != Frozen(2.0)
    assert len({Frozen(1.0), Frozen(1.0), Frozen(2.0)}) == 2
    assert Open(1.0) == Open(1.0) != Open(2.0)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Open(1.0))


def test_own_methods_and_fields_of_a_parent_stay() -> None:
    @hwsim.records.dataclass(frozen=True, slots=True)
    class Parent:
        """A parent."""

        name: str

        def __repr__(self) -> str:
            return f"<{self.name}>"

    @hwsim.records.dataclass(frozen=True, slots=True, repr=False)
    class Child(Parent):  # noqa: PLW1641 (the decorator gives a frozen class its hash)
        """A child whose equality is its own."""

        size: float = 1.0

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Child) and self.size == other.size

    assert repr(Child("c")) == "<c>"
    assert Child("a") == Child("b")
    assert Child("a") != Parent("a")
    assert hash(Child("a")) == hash(Child("a"))


DECORATORS = [hwsim.records.dataclass, dataclasses.dataclass]


@pytest.mark.parametrize("of_parent", DECORATORS, ids=["records", "standard"])
@pytest.mark.parametrize("of_child", DECORATORS, ids=["records", "standard"])
@pytest.mark.parametrize("options", [{"frozen": True, "slots": True}, {"frozen": True}, {}], ids=["slots", "frozen", "open"])
def test_inherits_from_the_standard_dataclass_and_back(
    of_parent: Decorator, of_child: Decorator, options: dict[str, Any]
) -> None:
    parent = point(of_parent, options)

    class Child(parent):  # type: ignore[valid-type, misc]
        """A point with a size."""

        size: float = 1.0

    child = of_child(**options)(Child)
    first = child(1.0, size=3.0)
    assert (first.derived, first.size, first.last) == (3.0, 3.0, "z")
    assert first == child(1.0, size=3.0) != child(1.0)
    assert first != parent(1.0)
    assert copy.deepcopy(first) == dataclasses.replace(child(5.0, size=3.0), x=1.0) == first
    if options:
        assert len({child(1.0, names=(), size=size) for size in (3.0, 3.0, 4.0)}) == 2
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
            first.x = 2.0
        with pytest.raises(dataclasses.FrozenInstanceError):
            parent(1.0).x = 2.0
    assert vars(parent)["__dataclass_params__"].frozen == vars(child)["__dataclass_params__"].frozen == bool(options)


@pytest.mark.parametrize("of_parent", DECORATORS, ids=["records", "standard"])
@pytest.mark.parametrize("of_child", DECORATORS, ids=["records", "standard"])
@pytest.mark.parametrize("frozen", [True, False], ids=["frozen-child", "open-child"])
def test_frozen_and_mutable_do_not_mix(of_parent: Decorator, of_child: Decorator, frozen: bool) -> None:
    @of_parent(frozen=not frozen)
    class Parent:
        """A parent."""

        name: str

    class Child(Parent):
        """A child that may change if its parent may not, or the other way round."""

        size: float = 1.0

    with pytest.raises(TypeError, match=r"cannot inherit (non-)?frozen dataclass from a (non-)?frozen one"):
        of_child(frozen=frozen)(Child)
    assert vars(Parent)["__dataclass_params__"].frozen is not frozen


@hwsim.records.dataclass(frozen=True, slots=True)
class Pickled:
    """A class that pickle finds by its name."""

    name: str
    size: float = 2.0


def test_pickles() -> None:
    assert pickle.loads(pickle.dumps(Pickled("p"))) == Pickled("p")


def test_a_value_may_be_what_stands_for_no_default() -> None:
    made: Any = point(hwsim.records.dataclass, {"frozen": True, "slots": True})
    assert made(1.0, last=dataclasses.MISSING).last is dataclasses.MISSING


def test_the_collector_goes_on_after_objects_were_made_without_it() -> None:
    with hwsim.records.without_collector():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="broken"), hwsim.records.without_collector():
        raise ValueError("broken")
    assert gc.isenabled()
