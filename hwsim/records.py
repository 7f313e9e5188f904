"""Dataclasses with fast class creation, to reduce the start-up time of hwsim.

`dataclasses.dataclass` generates and compiles `__init__`, `__repr__`, `__eq__`, `__hash__`, `__setattr__` and `__delattr__` of
every class: 0.52 ms for a frozen class with slots, and half of the start-up time of hwsim. This decorator takes a quarter of that
time. It compiles only `__init__`, and only for the first instance: a run imports 240 classes and instantiates 80. The other
methods are closures over the names of the fields, with the same results. Fields, slots, keyword-only arguments, `fields`,
`replace` and `asdict` are those of the standard library, and type checkers see the standard decorator (docs/decisions/0015).
"""

from __future__ import annotations

import dataclasses
import gc
from contextlib import contextmanager
from operator import attrgetter
from reprlib import recursive_repr
from threading import RLock
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Final, NoReturn

__all__ = ["dataclass", "without_collector"]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from dataclasses import dataclass

    Values = Callable[[Any], tuple[Any, ...]]
else:

    def dataclass(plain=None, /, *, frozen=False, eq=True, repr=True, **options):  # noqa: A002 (the standard names)
        """Convert a class to a dataclass, with the options of the standard library except `order`."""
        if plain is None:
            return lambda plain: dataclass(plain, frozen=frozen, eq=eq, repr=repr, **options)
        defined = {name for name, value in vars(plain).items() if name != "__hash__" or value is not None}
        made = _with_fields(plain, frozen, options)
        entries = dataclasses.fields(made)
        methods: dict[str, Any] = {"__init__": _Init(made, entries, frozen)}
        if repr:
            methods["__repr__"] = _repr([entry.name for entry in entries if entry.repr])
        compared = _values([entry.name for entry in entries if entry.compare])
        if eq:
            methods |= {"__eq__": _equality(compared), "__hash__": _hash(compared) if frozen else None}
        if frozen:
            methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
            methods |= {"__getstate__": _state, "__setstate__": _set_state}
        for name, method in methods.items():
            if name not in defined:
                setattr(made, name, method)
        params = made.__dataclass_params__
        params.init, params.repr, params.eq, params.frozen = True, repr, eq, frozen
        return made


@contextmanager
def without_collector() -> Iterator[None]:
    """Suspend garbage collection, which takes a fifth of the time if many objects without cycles are created."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


_MISSING: Final = dataclasses.MISSING
_MAKING: Final = RLock()  # serializes the time in which frozen parents count as mutable


def _with_fields(plain: type, frozen: bool, options: dict[str, Any]) -> Any:
    """Create the class with fields and slots by the standard library, without compiling methods.

    `dataclasses.dataclass(frozen=True)` would compile `__setattr__` and `__delattr__`, and without `frozen` it rejects frozen
    parents. Parents therefore count as mutable during the creation of the class.

    Raises:
        TypeError: either the class or a parent is frozen, but not both.
    """
    with _MAKING:
        parents = [vars(parent)["__dataclass_params__"] for parent in plain.__mro__[1:] if "__dataclass_params__" in vars(parent)]
        frozen_parents = [params for params in parents if params.frozen]
        if parents and bool(frozen_parents) != frozen:
            child, parent = ("frozen", "non-frozen") if frozen else ("non-frozen", "frozen")
            raise TypeError(f"cannot inherit {child} dataclass from a {parent} one")
        for params in frozen_parents:
            params.frozen = False
        try:
            return dataclasses.dataclass(init=False, repr=False, eq=False, **options)(plain)
        finally:
            for params in frozen_parents:
                params.frozen = True


class _Init:
    """A descriptor for `__init__` that compiles and replaces itself on first access."""

    __slots__ = ("entries", "frozen", "made")

    def __init__(self, made: type, entries: Sequence[dataclasses.Field[Any]], frozen: bool) -> None:
        self.made, self.entries, self.frozen = made, entries, frozen

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        init: Any = _init(self.made, self.entries, self.frozen)
        setattr(self.made, "__init__", init)  # noqa: B010 (type checkers refuse the assignment to a class)
        return init.__get__(instance, owner)


def _init(made: type, entries: Sequence[dataclasses.Field[Any]], frozen: bool) -> Callable[..., None]:
    names: dict[str, Any] = {"set_": object.__setattr__, "new_": _MISSING}
    positional = ["self"]
    keywords: list[str] = []
    body: list[str] = []
    for entry in entries:
        value = entry.name
        makes = entry.default_factory is not _MISSING
        if makes or entry.default is not _MISSING:
            names[f"{value}_"] = entry.default_factory if makes else entry.default
        if entry.init:
            parameter = f"{value}=new_" if makes else value if entry.default is _MISSING else f"{value}={value}_"
            (keywords if entry.kw_only else positional).append(parameter)
            value = f"{value}_() if {value} is new_ else {value}" if makes else value
        elif f"{value}_" in names:
            value = f"{value}_()" if makes else f"{value}_"
        else:
            continue
        slot = next((vars(base)[entry.name] for base in made.__mro__ if entry.name in vars(base)), None) if frozen else None
        if isinstance(slot, MemberDescriptorType):  # takes two thirds of the time of `object.__setattr__`
            names[f"set_{entry.name}_"] = slot.__set__
            body.append(f" set_{entry.name}_(self, {value})")
        else:
            body.append(f" set_(self, {entry.name!r}, {value})" if frozen else f" self.{entry.name} = {value}")
    if hasattr(made, "__post_init__"):
        body.append(" self.__post_init__()")
    parameters = ", ".join([*positional, *(["*", *keywords] if keywords else [])])
    exec(f"def __init__({parameters}):\n" + ("\n".join(body) or " pass"), names)
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init


def _values(names: Sequence[str]) -> Values:
    """A function that returns the values of fields as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple([getattr(self, name) for name in names])


def _repr(names: Sequence[str]) -> Callable[[Any], str]:
    @recursive_repr("...")
    def method(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in names])})"

    return method


def _equality(values: Values) -> Callable[[Any, Any], bool]:
    return lambda self, other: values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(values: Values) -> Callable[[Any], int]:
    return lambda self: hash(values(self))


def _refuse_to_set(self: Any, name: str, value: Any) -> NoReturn:  # noqa: ARG001
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> NoReturn:  # noqa: ARG001
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, entry.name) for entry in dataclasses.fields(self)]


def _set_state(self: Any, state: Sequence[Any]) -> None:
    for entry, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, entry.name, value)
