"""Replacement of numpy functions and random generators while calls are recorded; they are restored after any error."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from hwsim.devices.work import LibraryCall
from hwsim_calibrate.recording import numpy_calls
from hwsim_calibrate.recording.arrays import TracedArray, perform, plain, wrap
from hwsim_calibrate.recording.descriptions import unknown
from hwsim_calibrate.recording.operands import Recency
from hwsim_calibrate.recording.tape import Describe, Step, Tape, current, end, start, suspended

MADE: Final = (
    "arange", "empty", "eye", "fromfunction", "full", "geomspace", "identity", "indices", "linspace", "logspace", "meshgrid",
    "ones", "tri", "zeros", "hanning", "hamming", "blackman", "bartlett", "kaiser",
)  # fmt: skip
ALIKE: Final = ("empty_like", "full_like", "ones_like", "zeros_like")
GIVEN: Final = ("array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray")
READ: Final = ("frombuffer", "fromfile", "fromiter", "genfromtxt", "load", "loadtxt")
# Legacy functions -> name of the distribution; other functions keep their name.
DRAWS: Final = {"rand": "random", "randn": "normal", "randint": "integers", "random_sample": "random", "ranf": "random"}
SILENT: Final = frozenset({
    "seed", "get_state", "set_state", "spawn", "get_bit_generator", "set_bit_generator", "bytes", "test", "default_rng",
})  # fmt: skip
IN_PLACE: Final = ("shuffle",)
ORDERED: Final = {"ascontiguousarray": "c_contiguous", "asfortranarray": "f_contiguous"}
WARM_UPS: Final = 2  # runs of a step before the recorded run


def calls_of(make: Callable[[], Callable[[], object]]) -> list[LibraryCall]:
    """Return the calls of one run of a step with warm caches; `since` counts from the previous run.

    make: function that prepares the step.
    """
    return [done.op.call for done in steps_of(make, timed=False) if done.op.call is not None]


def steps_of(make: Callable[[], Callable[[], object]], warm_ups: int = WARM_UPS, *, timed: bool = True) -> list[Step]:
    """Return the steps of one run, including calls that hwsim does not model.

    Args:
        make: function that prepares the step.
        warm_ups: runs before the last two runs, of which the second is returned; 0: only one run.
        timed: whether the overhead of the clocks is measured and subtracted.
    """
    tape = Tape() if timed else Tape(_overhead=(0.0, 0.0))
    with recording(tape):
        step = make()
        for _ in range(warm_ups):
            step()
        tape.recent = Recency()
        if warm_ups:
            step()
        tape.steps.clear()
        step()
    return tape.steps


@contextmanager
def recording(tape: Tape) -> Iterator[Tape]:
    """Record numpy calls of this thread."""
    before: list[tuple[Any, str, Any]] = []
    random: Any = np.random

    def replace(owner: Any, name: str, new: Any) -> None:
        before.append((owner, name, getattr(owner, name)))
        setattr(owner, name, new)

    try:
        for names, describe in (
            ((*MADE, *ALIKE), numpy_calls.created), (READ, unknown), (GIVEN, numpy_calls.from_objects),
        ):  # fmt: skip
            for name in names:
                replace(np, name, _recorded(name, getattr(np, name), describe))
        for name in dir(random):
            function = getattr(random, name)
            if _draws(name, function):
                replace(random, name, _drawing(name, function))
        replace(random, "Generator", _generator(random.Generator))
        replace(random, "RandomState", _generator(random.RandomState, numpy_calls.drawn))
        replace(random, "default_rng", _default_rng(random.default_rng, random.Generator))
        start(tape)
        try:
            yield tape
        finally:
            end()
    finally:
        for owner, name, old in reversed(before):
            setattr(owner, name, old)


def _recorded(name: str, function: Callable[..., Any], describe: Describe) -> Callable[..., Any]:

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if current() is None:
            return function(*args, **options)
        given, keywords = plain(args), plain(options)
        is_work = _has_effect(name, given, keywords)
        result = perform(describe, name, function, given, keywords) if is_work else function(*given, **keywords)
        if args and isinstance(args[0], TracedArray) and result is given[0]:
            return args[0]
        return wrap(result)

    return call


def _has_effect(name: str, args: Any, options: Any) -> bool:
    """Return whether the call does anything: `asarray` of an array of the same type returns the array."""
    if not name.startswith("as") or not args or not isinstance(args[0], np.ndarray):
        return True
    if name in ORDERED:
        return not getattr(args[0].flags, ORDERED[name])
    return len(args) > 1 or bool(options)


def _draws(name: str, function: Any) -> bool:
    return callable(function) and not name.startswith("_") and name not in SILENT and not isinstance(function, type)


def _drawing(name: str, function: Callable[..., Any], describe: Describe = numpy_calls.drawn) -> Callable[..., Any]:

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if current() is None:
            return function(*args, **options)
        given, keywords = plain(args), plain(options)
        if name in IN_PLACE:
            changed = [array for array in given if isinstance(array, np.ndarray)]
            return perform(numpy_calls.shuffled, name, function, given, keywords, changes=changed)
        result = perform(describe, DRAWS.get(name, name), function, given, keywords)
        out = options.get("out")
        return out if isinstance(out, TracedArray) else wrap(result)

    return call


def _generator(generator: Any, describe: Describe = numpy_calls.generated) -> Any:
    functions = {name: getattr(generator, name) for name in dir(generator)}
    methods = {name: _drawing_method(name, function, describe) for name, function in functions.items() if _draws(name, function)}
    return type(generator.__name__, (generator,), {"__module__": generator.__module__, **methods})


def _drawing_method(name: str, function: Callable[..., Any], describe: Describe) -> Callable[..., Any]:
    """Return a method like `_drawing`, without the generator as an operand."""

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
        with suspended():  # seeding uses arrays internally
            return recorded(default_rng(plain(seed)).bit_generator)

    return call
