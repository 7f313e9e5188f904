"""Time of collectives on a machine by size: the rows of nccl-tests.

    algbw = size / time        busbw = algbw x factor

The factor is the least fraction of the size that each rank must send or receive, so busbw is comparable with link bandwidths
for any number of ranks:

    all-reduce 2 (n - 1)/n      all-gather, reduce-scatter, all-to-all, gather, scatter (n - 1)/n      others 1

**Source**: NVIDIA/nccl-tests, doc/PERFORMANCE.md and the getBw functions of src/*.cu; the size is the larger of the sent and
received bytes of a rank, as in nccl-tests. **Error**: that of the machine's constants (docs/validation/collectives.md).
**Range**: nothing else runs; all ranks arrive at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hwsim.communication import ALGORITHMS, OPERATIONS, Algorithm, CannotCollect, Operation
from hwsim.communication.timing import default_algorithm, is_ideal, library_of, timed
from hwsim.demand import Choice, CollectiveExchange
from hwsim.devices.roofline import source_of
from hwsim.machine import Machine, NoRoute, UnknownName
from hwsim.machine.libraries.nccl import Nccl
from hwsim.records import dataclass
from hwsim.spec import did_you_mean
from hwsim.spec.ranges import is_range, parse_range
from hwsim.units import SIZE, UnitError, parse_as
from hwsim.views.kit.view import Unshowable

AUTO: Final = "auto"
ALL: Final = "all"
MOST: Final = 10_000  # largest number of sizes
NAMES: Final = (AUTO, *ALGORITHMS)


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """One size with one algorithm.

    Args:
        size: size (B).
        algorithm: name of the algorithm.
        seconds: time (s).
        algbw, busbw: bandwidth (B/s).
        choice: choice of the library and its runner-up; None unless the algorithm is auto.
        ideal: whether it has no measured constants although the library has some, so that it is not comparable.
    """

    size: float
    algorithm: str
    seconds: float
    algbw: float
    busbw: float
    choice: Choice | None = None
    ideal: bool = False


@dataclass(frozen=True, slots=True)
class CollectiveTimes:
    """Rows by size, then by algorithm.

    Args:
        operation: collective operation.
        devices: devices.
        algorithms: algorithms.
        rows: rows.
        library: kind of the communication library; "" without one.
        assumed: whether its constants are those of the generation of the links instead of the machine.
        cannot: (algorithm, reason) of algorithms that are not available among these devices.
    """

    operation: Operation
    devices: tuple[str, ...]
    algorithms: tuple[str, ...]
    rows: tuple[CollectiveRow, ...]
    library: str = ""
    assumed: bool = False
    cannot: tuple[tuple[str, str], ...] = ()

    @property
    def sizes(self) -> tuple[float, ...]:
        """Sizes without repetition (B)."""
        return tuple(dict.fromkeys(row.size for row in self.rows))

    @property
    def comparable(self) -> tuple[CollectiveRow, ...]:
        """Rows with measured constants; all rows if none has any."""
        return tuple(row for row in self.rows if not row.ideal) or self.rows

    def of(self, algorithm: str) -> tuple[CollectiveRow, ...]:
        """Return the rows of an algorithm."""
        return tuple(row for row in self.rows if row.algorithm == algorithm)


def find(machine: Machine, *, operation: str, sizes: str, among: str = "", algorithm: str = "") -> CollectiveTimes:
    """Return the rows of a collective for options of the command line; see `measure`.

    Raises:
        Unshowable: an option is invalid, or the collective is not possible among these devices.
    """
    _refuse_unknown(operation, OPERATIONS, "--op", "operation")
    names = tuple(name.strip() for name in algorithm.split(",")) if algorithm else ()
    for name in names:
        _refuse_unknown(name, (*NAMES, ALL), "--algorithm", "algorithm")
    known = next(name for name in OPERATIONS if name == operation)
    try:
        return measure(machine, known, _devices(machine, among), _sizes(sizes), names)
    except (CannotCollect, NoRoute, UnknownName) as error:
        raise Unshowable(str(error), error.hint) from error


def _refuse_unknown(name: str, names: Sequence[str], option: str, kind: str) -> None:
    if name not in names:
        of_kind = [known for known, algorithm in ALGORITHMS.items() if algorithm.kind == name and known in names]
        similar = did_you_mean(name, names) or f"known: {', '.join(names)}"
        hint = f"algorithms of this kind: {', '.join(of_kind)}" if of_kind else similar
        raise Unshowable(f"unknown {kind} '{name}'", hint, option)


def _devices(machine: Machine, among: str) -> tuple[str, ...]:
    if not among:
        return machine.devices_of("gpu") or machine.devices_of("cpu")
    try:
        return machine.select([name.strip() for name in among.split(",")])
    except UnknownName as error:
        raise Unshowable(error.message, error.hint, "--among") from error


def _sizes(text: str) -> tuple[float, ...]:
    """Return the sizes of a range or a comma-separated list (B); a range without a step doubles."""
    sizes: list[float] = []
    try:
        for part in text.split(","):
            if is_range(part):
                span = parse_range(part if ":" in part else f"{part}:x2")
                if not span.dimension.plain and not span.dimension.fits(SIZE):
                    raise UnitError(f"expected sizes, got '{part}' ({span.dimension.name})", "for example 1KiB..16GiB")
                sizes += span.values(40)
            else:
                sizes.append(parse_as(part.strip(), SIZE))
    except UnitError as error:
        raise Unshowable(str(error), getattr(error, "hint", None), "--bytes") from error
    if len(sizes) > MOST:
        raise Unshowable(f"{len(sizes)} sizes: expected at most {MOST}", option="--bytes")
    if any(size < 0 for size in sizes):
        raise Unshowable("negative size: expected 0 or more bytes", option="--bytes")
    return tuple(dict.fromkeys(float(size) for size in sizes))


def measure(
    machine: Machine,
    operation: Operation,
    devices: Sequence[str],
    sizes: Sequence[float],
    algorithms: Sequence[str] = (),
) -> CollectiveTimes:
    """Return the times of all sizes with all algorithms.

    Args:
        machine: machine.
        operation: collective operation.
        devices: devices.
        sizes: sizes (B).
        algorithms: algorithms; `all` adds auto and all that are available; default: the default of workloads.

    Raises:
        CannotCollect: a named algorithm is not available, or there are fewer than two devices.
        NoRoute, UnknownName: the devices are not connected, or the machine lacks a device that an algorithm needs (ps-cpu).
    """
    if len(devices) < 2:
        raise CannotCollect("a collective among fewer than two devices takes no time", "name more with --among")
    algorithms = algorithms or (default_algorithm(machine, operation, devices),)
    named = [name for name in algorithms if name != ALL]
    wanted = tuple(dict.fromkeys([*named, *(NAMES if ALL in algorithms else ())]))
    rates, factor = machine.rates(), CollectiveExchange(operation, 1.0, len(devices)).passed
    rows: list[CollectiveRow] = []
    cannot: dict[str, str] = {}
    for size in sizes:
        for name in wanted:
            if name in cannot:
                continue
            algorithm: Algorithm | None = None if name == AUTO else ALGORITHMS[name]
            try:
                flows = timed(machine, algorithm, operation, devices, size)
            except (CannotCollect, NoRoute, UnknownName) as error:
                if name in named:
                    raise
                cannot[name] = error.message
                continue
            seconds = flows.alone(rates)
            algbw = size / seconds if seconds > 0 else 0.0
            choice = flows.phases[0].cost.choice if flows.phases else None
            ideal = is_ideal(machine, algorithm, operation, devices, size)
            rows.append(CollectiveRow(size, name, seconds, algbw, algbw * factor, choice, ideal))
    library = library_of(machine, devices)
    done = tuple(name for name in wanted if name not in cannot)
    assumed = isinstance(library, Nccl) and source_of(library.sources, "start").kind == "default"
    kind = "" if library is None else library.kind
    return CollectiveTimes(operation, tuple(devices), done, tuple(rows), kind, assumed, tuple(cannot.items()))
