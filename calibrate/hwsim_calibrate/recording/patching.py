"""numpy while it is recorded: functions that make arrays, and random generators, are replaced, and restored whatever happens."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from hwsim.devices.work import LibraryCall
from hwsim_calibrate.recording import describing
from hwsim_calibrate.recording.arrays import TracedArray, perform, plain, wrap
from hwsim_calibrate.recording.building import unknown
from hwsim_calibrate.recording.operands import Recency
from hwsim_calibrate.recording.tape import Describe, Step, Tape, current, ended, started, unheard

MADE: Final = (
    "arange", "empty", "eye", "fromfunction", "full", "geomspace", "identity", "indices", "linspace", "logspace", "meshgrid",
    "ones", "tri", "zeros", "hanning", "hamming", "blackman", "bartlett", "kaiser",
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
ORDERED: Final = {"ascontiguousarray": "c_contiguous", "asfortranarray": "f_contiguous"}
WARM: Final = 2  # runs of a step before the ones that are recorded


def calls_of(make: Callable[[], Callable[[], object]]) -> list[LibraryCall]:
    """The calls of one run of the step that `make` prepares, warm: `since` counts from the run before it."""
    return [done.op.call for done in steps_of(make, timed=False) if done.op.call is not None]


def steps_of(make: Callable[[], Callable[[], object]], warm: int = WARM, *, timed: bool = True) -> list[Step]:
    """The same with what hwsim has no call for.

    warm: runs before the last two, whose second is kept; 0: one run alone.  timed: or seconds are with what the clocks add.
    """
    tape = Tape() if timed else Tape(_overhead=(0.0, 0.0))
    with recording(tape):
        step = make()
        for _ in range(warm):
            step()
        tape.recent = Recency()
        if warm:
            step()
        tape.steps.clear()
        step()
    return tape.steps


@contextmanager
def recording(tape: Tape) -> Iterator[Tape]:
    """Record the calls of numpy on this thread."""
    before: list[tuple[Any, str, Any]] = []
    random: Any = np.random

    def replace(owner: Any, name: str, new: Any) -> None:
        before.append((owner, name, getattr(owner, name)))
        setattr(owner, name, new)

    try:
        for names, describe in (
            ((*MADE, *ALIKE), describing.created), (READ, unknown), (GIVEN, describing.from_objects),
        ):  # fmt: skip
            for name in names:
                replace(np, name, _recorded(name, getattr(np, name), describe))
        for name in dir(random):
            function = getattr(random, name)
            if _draws(name, function):
                replace(random, name, _drawing(name, function))
        replace(random, "Generator", _generator(random.Generator))
        replace(random, "RandomState", _generator(random.RandomState, describing.drawn))
        replace(random, "default_rng", _default_rng(random.default_rng, random.Generator))
        started(tape)
        try:
            yield tape
        finally:
            ended()
    finally:
        for owner, name, old in reversed(before):
            setattr(owner, name, old)


def _recorded(name: str, function: Callable[..., Any], describe: Describe) -> Callable[..., Any]:
    """The function, recorded; unchanged while no tape runs."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if current() is None:
            return function(*args, **options)
        given, keywords = plain(args), plain(options)
        works = _works(name, given, keywords)
        result = perform(describe, name, function, given, keywords) if works else function(*given, **keywords)
        if args and isinstance(args[0], TracedArray) and result is given[0]:
            return args[0]
        return wrap(result)

    return call


def _works(name: str, args: Any, options: Any) -> bool:
    """Whether the call does anything: `asarray` of an array of the same type returns it."""
    if not name.startswith("as") or not args or not isinstance(args[0], np.ndarray):
        return True
    if name in ORDERED:
        return not getattr(args[0].flags, ORDERED[name])
    return len(args) > 1 or bool(options)


def _draws(name: str, function: Any) -> bool:
    return callable(function) and not name.startswith("_") and name not in SILENT and not isinstance(function, type)


def _drawing(name: str, function: Callable[..., Any], describe: Describe = describing.drawn) -> Callable[..., Any]:
    """A function of `numpy.random`, or a method of a generator."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if current() is None:
            return function(*args, **options)
        given, keywords = plain(args), plain(options)
        if name in IN_PLACE:
            changed = [each for each in given if isinstance(each, np.ndarray)]
            return perform(describing.shuffled, name, function, given, keywords, changes=changed)
        result = perform(describe, DRAWS.get(name, name), function, given, keywords)
        out = options.get("out")
        return out if isinstance(out, TracedArray) else wrap(result)

    return call


def _generator(generator: Any, describe: Describe = describing.generated) -> Any:
    """A class of generators whose draws are recorded."""
    functions = {name: getattr(generator, name) for name in dir(generator)}
    methods = {name: _drawing_method(name, function, describe) for name, function in functions.items() if _draws(name, function)}
    return type(generator.__name__, (generator,), {"__module__": generator.__module__, **methods})


def _drawing_method(name: str, function: Callable[..., Any], describe: Describe) -> Callable[..., Any]:
    """As `_drawing`; the generator itself is no operand."""

    def call(self: Any, *args: Any, **options: Any) -> Any:
        return _drawing(name, functools.partial(function, self), describe)(*args, **options)

    call.__name__ = name
    return call


def _default_rng(default_rng: Callable[..., Any], generator: Any) -> Callable[..., Any]:
    recorded = np.random.Generator

    @functools.wraps(default_rng)
    def call(seed: Any = None) -> Any:
        if isinstance(seed, generator):
            return seed
        with unheard():  # a seed is spread with arrays, too
            return recorded(default_rng(plain(seed)).bit_generator)

    return call
