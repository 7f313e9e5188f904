"""Time of collectives on a machine, size by size: the rows of nccl-tests.

    algbw = size / time        busbw = algbw x factor

The factor is what of the size must pass each rank at least, so that busbw can be compared with the links whatever the ranks:

    all-reduce 2 (n - 1)/n      all-gather, reduce-scatter, all-to-all, gather, scatter (n - 1)/n      the others 1

**Source**: NVIDIA/nccl-tests, doc/PERFORMANCE.md and the getBw functions of src/*.cu; the size is the larger of what a rank
sends and receives, as they print it.
**Error**: of the machine's numbers (docs/validation/collectives.md).
**Range**: nothing else runs; all ranks come at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hwsim.communication import ALGORITHMS, OPERATIONS, Algorithm, CannotCollect, Operation
from hwsim.communication.timing import is_ideal, library_of, timed, usual
from hwsim.demand import Choice, Exchanged
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
MOST: Final = 10_000  # sizes
NAMES: Final = (AUTO, *ALGORITHMS)


@dataclass(frozen=True, slots=True)
class Row:
    """One size by one algorithm.

    Args:
        choice: of auto, what was chosen and what came second.
        ideal: without measured constants, where the machine's library has those of others: not to be compared with them.
    """

    size: float
    algorithm: str
    seconds: float
    algbw: float
    busbw: float
    choice: Choice | None = None
    ideal: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """Rows by size, then in the order of the algorithms.

    library: kind of what the devices use, "" if nothing; assumed: not as the machine says, but by the generation of its links.
    cannot: algorithms that do not do this among these devices, and why.
    """

    operation: Operation
    devices: tuple[str, ...]
    algorithms: tuple[str, ...]
    rows: tuple[Row, ...]
    library: str = ""
    assumed: bool = False
    cannot: tuple[tuple[str, str], ...] = ()

    @property
    def sizes(self) -> tuple[float, ...]:
        """Every size once."""
        return tuple(dict.fromkeys(row.size for row in self.rows))

    @property
    def comparable(self) -> tuple[Row, ...]:
        """Rows of which one may be the best: those with measured constants, or all if none has any."""
        return tuple(row for row in self.rows if not row.ideal) or self.rows

    def of(self, algorithm: str) -> tuple[Row, ...]:
        """The rows of one algorithm."""
        return tuple(row for row in self.rows if row.algorithm == algorithm)


def find(machine: Machine, *, operation: str, sizes: str, among: str = "", algorithm: str = "") -> Measured:
    """Rows of a collective by the texts that a user gives: see `measure`.

    Raises:
        Unshowable: an option is wrong, or the collective cannot be done among these devices.
    """
    _refuse_unknown(operation, OPERATIONS, "--op", "operation")
    names = tuple(name.strip() for name in algorithm.split(",")) if algorithm else ()
    for name in names:
        _refuse_unknown(name, (*NAMES, ALL), "--algorithm", "algorithm")
    does = next(each for each in OPERATIONS if each == operation)
    try:
        return measure(machine, does, _devices(machine, among), _sizes(sizes), names)
    except (CannotCollect, NoRoute, UnknownName) as error:
        raise Unshowable(str(error), error.hint) from error


def _refuse_unknown(name: str, names: Sequence[str], option: str, kind: str) -> None:
    if name not in names:
        of_kind = [each for each, algorithm in ALGORITHMS.items() if algorithm.kind == name and each in names]
        known = did_you_mean(name, names) or f"there are {', '.join(names)}"
        hint = f"of this kind there are {', '.join(of_kind)}" if of_kind else known
        raise Unshowable(f"there is no {kind} '{name}'", hint, option)


def _devices(machine: Machine, among: str) -> tuple[str, ...]:
    if not among:
        return machine.devices_of("gpu") or machine.devices_of("cpu")
    try:
        return machine.select([name.strip() for name in among.split(",")])
    except UnknownName as error:
        raise Unshowable(error.message, error.hint, "--among") from error


def _sizes(text: str) -> tuple[float, ...]:
    """Bytes of a range, or of several sizes with commas; a range without a step doubles."""
    sizes: list[float] = []
    try:
        for part in text.split(","):
            if is_range(part):
                span = parse_range(part if ":" in part else f"{part}:x2")
                if not span.dimension.plain and not span.dimension.fits(SIZE):
                    raise UnitError(f"'{part}' is {span.dimension.name}, not bytes", "such as 1KiB..16GiB")
                sizes += span.values(40)
            else:
                sizes.append(parse_as(part.strip(), SIZE))
    except UnitError as error:
        raise Unshowable(str(error), getattr(error, "hint", None), "--bytes") from error
    if len(sizes) > MOST:
        raise Unshowable(f"{len(sizes)} sizes: at most {MOST}", option="--bytes")
    if any(size < 0 for size in sizes):
        raise Unshowable("a size cannot be negative", option="--bytes")
    return tuple(dict.fromkeys(float(size) for size in sizes))


def measure(
    machine: Machine,
    operation: Operation,
    devices: Sequence[str],
    sizes: Sequence[float],
    algorithms: Sequence[str] = (),
) -> Measured:
    """Every size by every algorithm.  `all` is every algorithm that can, after auto; without any it is a workload's default.

    Raises:
        CannotCollect: an algorithm that is named, and not as `all`, cannot; or fewer than two devices.
        NoRoute, UnknownName: the devices are not connected, or the machine lacks the device that an algorithm adds (ps-cpu).
    """
    if len(devices) < 2:
        raise CannotCollect("a collective among fewer than two devices takes no time", "name more with --among")
    algorithms = algorithms or (usual(machine, operation, devices),)
    named = [name for name in algorithms if name != ALL]
    wanted = tuple(dict.fromkeys([*named, *(NAMES if ALL in algorithms else ())]))
    rates, factor = machine.rates(), Exchanged(operation, 1.0, len(devices)).passed
    rows: list[Row] = []
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
            rows.append(Row(size, name, seconds, algbw, algbw * factor, choice, ideal))
    library = library_of(machine, devices)
    done = tuple(name for name in wanted if name not in cannot)
    assumed = isinstance(library, Nccl) and source_of(library.sources, "start").kind == "default"
    kind = "" if library is None else library.kind
    return Measured(operation, tuple(devices), done, tuple(rows), kind, assumed, tuple(cannot.items()))
