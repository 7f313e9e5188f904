"""Functions that make arrays, and random generators, replaced by ones that tell; put back whatever happens."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from hwsim_calibrate.recording import describing as say
from hwsim_calibrate.recording.arrays import TracedArray, perform, plain, wrap
from hwsim_calibrate.recording.tape import Describe, Tape, current, ended, started, unheard

MADE: Final = (
    "arange", "empty", "eye", "fromfunction", "full", "geomspace", "identity", "indices", "linspace", "logspace", "meshgrid",
    "ones", "tri", "zeros",
)  # fmt: skip
ALIKE: Final = ("empty_like", "full_like", "ones_like", "zeros_like")
GIVEN: Final = ("array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray")
READ: Final = ("frombuffer", "fromfile", "fromiter", "genfromtxt", "load", "loadtxt")
# Distributions by what they draw; others keep their own name.
DRAWS: Final = {"rand": "random", "randn": "normal", "randint": "integers", "random_sample": "random", "ranf": "random"}
SILENT: Final = frozenset({
    "seed", "get_state", "set_state", "spawn", "get_bit_generator", "set_bit_generator", "bytes", "test", "default_rng",
})  # fmt: skip
IN_PLACE: Final = ("shuffle",)


@contextmanager
def recording(tape: Tape) -> Iterator[Tape]:
    """While it lasts, what numpy is asked for on this thread is written to the tape."""
    before: list[tuple[Any, str, Any]] = []
    random: Any = np.random

    def replace(owner: Any, name: str, new: Any) -> None:
        before.append((owner, name, getattr(owner, name)))
        setattr(owner, name, new)

    try:
        for names, describe in ((MADE, say.created), (ALIKE, say.created), (READ, say.unknown), (GIVEN, say.from_objects)):
            for name in names:
                replace(np, name, _told(name, getattr(np, name), describe))
        for name in dir(random):
            function = getattr(random, name)
            if _draws(name, function):
                replace(random, name, _drawing(name, function))
        replace(random, "Generator", _telling(random.Generator))
        replace(random, "RandomState", _telling(random.RandomState))
        replace(random, "default_rng", _default_rng(random.default_rng, random.Generator))
        started(tape)
        try:
            yield tape
        finally:
            ended()
    finally:
        for owner, name, old in reversed(before):
            setattr(owner, name, old)


def _told(name: str, function: Callable[..., Any], describe: Describe) -> Callable[..., Any]:
    """The function, telling; as itself while nothing is recorded."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if current() is None:
            return function(*args, **options)
        given, said = plain(args), plain(options)
        found = perform(describe, name, function, given, said) if _works(name, given, said) else function(*given, **said)
        if args and isinstance(args[0], TracedArray) and found is given[0]:
            return args[0]
        return wrap(found)

    return call


def _works(name: str, args: Any, options: Any) -> bool:
    """Whether there is something to do: `asarray` of an array of the same type only looks at it."""
    if not name.startswith("as") or not args or not isinstance(args[0], np.ndarray):
        return True
    return len(args) > 1 or bool(options)


def _draws(name: str, function: Any) -> bool:
    return callable(function) and not name.startswith("_") and name not in SILENT and not isinstance(function, type)


def _drawing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `numpy.random`, or a method of a generator."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if current() is None:
            return function(*args, **options)
        given, said = plain(args), plain(options)
        if name in IN_PLACE:
            changed = [each for each in given if isinstance(each, np.ndarray)]
            return perform(say.unknown, name, function, given, said, changes=changed)
        found = perform(say.drawn, DRAWS.get(name, name), function, given, said)
        out = options.get("out")
        return out if isinstance(out, TracedArray) else wrap(found)

    return call


def _telling(generator: Any) -> Any:
    """A class of generators whose draws are told."""
    found = {name: getattr(generator, name) for name in dir(generator)}
    methods = {name: _drawing_method(name, function) for name, function in found.items() if _draws(name, function)}
    return type(generator.__name__, (generator,), {"__module__": generator.__module__, **methods})


def _drawing_method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """As `_drawing`; the generator itself is no operand."""

    def call(self: Any, *args: Any, **options: Any) -> Any:
        return _drawing(name, functools.partial(function, self))(*args, **options)

    call.__name__ = name
    return call


def _default_rng(default_rng: Callable[..., Any], generator: Any) -> Callable[..., Any]:
    told = np.random.Generator

    @functools.wraps(default_rng)
    def call(seed: Any = None) -> Any:
        if isinstance(seed, generator):
            return seed
        with unheard():  # a seed is spread by arrays, too
            return told(default_rng(plain(seed)).bit_generator)

    return call
