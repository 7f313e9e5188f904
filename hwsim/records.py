"""Dataclasses with fast class creation, to reduce the start-up time of hwsim.

`dataclasses.dataclass` generates and compiles `__init__`, `__repr__`, `__eq__`, `__hash__`, `__setattr__` and `__delattr__` of
every class, which took half of the start-up time of hwsim. This decorator takes a twentieth of that time. It compiles only
`__init__`, for the first instance of a class, because a run imports 240 classes and instantiates 80; classes that differ only in
names and defaults share the compiled code. The other methods are closures over the names of the fields, with the same results.
Fields, slots, keyword-only arguments, `fields`, `replace` and `asdict` are those of the standard library, and type checkers see
the standard decorator (docs/decisions/0015).
"""

from __future__ import annotations

import dataclasses
import gc
from contextlib import contextmanager
from functools import cache
from inspect import get_annotations
from operator import attrgetter
from reprlib import recursive_repr
from types import CodeType, FunctionType, MemberDescriptorType
from typing import TYPE_CHECKING, Any, Final, NoReturn

__all__ = ["dataclass", "without_collector"]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from dataclasses import dataclass

    Values = Callable[[Any], tuple[Any, ...]]
else:

    def dataclass(plain=None, /, *, frozen=False, eq=True, repr=True, slots=False, kw_only=False):  # noqa: A002 (standard)
        """Convert a class to a dataclass, with the options of the standard library except `order`."""
        if plain is None:
            return lambda plain: dataclass(plain, frozen=frozen, eq=eq, repr=repr, slots=slots, kw_only=kw_only)
        fields = _fields(plain, frozen, kw_only)
        entries = list(fields.values())
        methods: dict[str, Any] = {"__init__": _INIT}
        if repr:
            methods["__repr__"] = _repr([entry.name for entry in entries if entry.repr])
        compared = _values([entry.name for entry in entries if entry.compare])
        if eq:
            methods |= {"__eq__": _equality(compared), "__hash__": _hash(compared) if frozen else None}
        if frozen:
            methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
            methods |= {"__getstate__": _state, "__setstate__": _set_state}
        methods |= {name: value for name, value in vars(plain).items() if name in methods and (name != "__hash__" or value)}
        methods["__dataclass_fields__"] = fields
        methods["__dataclass_params__"] = _params(frozen=frozen, eq=eq, repr=repr, slots=slots, kw_only=kw_only)
        methods["__match_args__"] = tuple([entry.name for entry in entries if entry.init and not entry.kw_only])
        return _with_members(plain, methods, fields, slots)


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


@cache
def _params(*, frozen: bool, eq: bool, repr: bool, **options: bool) -> Any:  # noqa: A002 (the standard names)
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, **options)(type("Empty", (), {"__doc__": "Empty."}))
    params = made.__dataclass_params__
    params.init, params.repr, params.eq, params.frozen = True, repr, eq, frozen
    return params


def _fields(plain: type, frozen: bool, kw_only: bool) -> dict[str, Any]:
    """Return the fields of a class by name, those of its parents first.

    Raises:
        TypeError: either the class or a parent is frozen, but not both.
    """
    parents: list[Any] = [parent for parent in plain.__mro__[:0:-1] if "__dataclass_fields__" in vars(parent)]
    if parents and any(parent.__dataclass_params__.frozen for parent in parents) != frozen:
        child, parent = ("frozen", "non-frozen") if frozen else ("non-frozen", "frozen")
        raise TypeError(f"cannot inherit {child} dataclass from a {parent} one")
    fields: dict[str, Any] = {entry.name: entry for parent in parents for entry in dataclasses.fields(parent)}
    for name, annotation in get_annotations(plain).items():
        if not str(annotation).startswith(("ClassVar", "typing.ClassVar")):
            default = vars(plain).get(name, _MISSING)
            entry: Any = default if isinstance(default, dataclasses.Field) else dataclasses.field(default=default)
            entry.name, entry.type, entry._field_type = name, annotation, dataclasses._FIELD  # type: ignore[attr-defined]  # noqa: SLF001
            entry.kw_only = kw_only if entry.kw_only is _MISSING else entry.kw_only
            fields[name] = entry
    return fields


def _with_members(plain: type, members: dict[str, Any], fields: Mapping[str, Any], slots: bool) -> Any:
    """Return the class with these members; with slots a new class, because a class cannot receive them later."""
    if not slots:
        members |= {name: fields[name].default for name in fields.keys() & vars(plain).keys()}
        for name, member in members.items():
            delattr(plain, name) if member is _MISSING else setattr(plain, name, member)
        return plain
    taken = {slot for parent in plain.__mro__[1:] for slot in vars(parent).get("__slots__", ())}
    kept = {name: value for name, value in vars(plain).items() if name not in {"__dict__", "__weakref__", *fields}}
    members = {**kept, **members, "__slots__": tuple([name for name in fields if name not in taken])}
    made = type(plain)(plain.__name__, plain.__bases__, members)
    made.__qualname__ = plain.__qualname__
    return made


class _Init:
    """A descriptor for `__init__` that compiles it on first access, and then replaces itself."""

    def __get__(self, instance: Any, owner: Any) -> Any:
        made = next(base for base in owner.__mro__ if vars(base).get("__init__") is self)
        made.__init__ = init = _init(made, dataclasses.fields(made), made.__dataclass_params__.frozen)
        return init.__get__(instance, owner)


_INIT: Final = _Init()


def _init(made: type, entries: Sequence[dataclasses.Field[Any]], frozen: bool) -> Any:
    """Return `__init__`; classes that differ only in names and defaults share its code."""
    given = sorted((entry for entry in entries if entry.init), key=attrgetter("kw_only"))  # positional ones first
    names: dict[str, Any] = {"set_": object.__setattr__, "new_": _MISSING}
    body: list[str] = []
    for number, entry in enumerate(entries):
        makes = entry.default_factory is not _MISSING
        names[f"default_{number}"] = default = entry.default_factory if makes else entry.default
        value = f"default_{number}()" if makes else f"default_{number}"
        if entry.init:
            argument = f"v{given.index(entry)}"
            value = f"{value} if {argument} is new_ else {argument}" if makes else argument
        elif default is _MISSING:
            continue
        slot = next((vars(base)[entry.name] for base in made.__mro__ if entry.name in vars(base)), None) if frozen else None
        if isinstance(slot, MemberDescriptorType):  # takes two thirds of the time of `object.__setattr__`
            names[f"set_{number}"] = slot.__set__
            body.append(f" set_{number}(self, {value})")
        else:
            body.append(f" set_(self, {entry.name!r}, {value})" if frozen else f" self.{entry.name} = {value}")
    if hasattr(made, "__post_init__"):
        body.append(" self.__post_init__()")
    defaults = {entry: entry.default for entry in given if (entry.default, entry.default_factory) != (_MISSING, _MISSING)}
    code = _code(len(given), sum(bool(entry.kw_only) for entry in given), "\n".join(body) or " pass")  # integers
    code = code.replace(co_varnames=("self", *[entry.name for entry in given]), co_qualname=f"{made.__qualname__}.__init__")
    init = FunctionType(code, names, "__init__", tuple([default for entry, default in defaults.items() if not entry.kw_only]))
    init.__kwdefaults__ = {entry.name: default for entry, default in defaults.items() if entry.kw_only}
    return init


@cache
def _code(count: int, keyword_count: int, body: str) -> CodeType:
    """Return the code of a function with arguments `v0`, `v1`, ..., the last ones as keywords."""
    values = [f"v{number}" for number in range(count)]
    values.insert(count - keyword_count, "*") if keyword_count else None
    names: dict[str, Any] = {}
    exec(f"def __init__({', '.join(['self', *values])}):\n{body}", names)
    return names["__init__"].__code__  # type: ignore[no-any-return]


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
