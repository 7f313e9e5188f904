"""Parser of services: resolves names, lowers each statement to its cost, and returns programs of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum, isclose
from typing import Any, Final

from hwsim import ticks
from hwsim.demand import rates_of
from hwsim.devices import CannotCompute
from hwsim.families.services.workload.popularity import hit_rate_curve
from hwsim.families.services.workload.program import (
    NONE,
    Ask,
    Branch,
    End,
    Fork,
    Give,
    Join,
    Jump,
    Keep,
    Serve,
    ServedStatement,
    ServiceCache,
    ServiceLock,
    StatementDraw,
    Step,
    StepNumber,
    Take,
)  # fmt: skip
from hwsim.families.services.workload.random_values import RandomValue, draws_in, kept_in, lines_of, read_draw, substitute_draw
from hwsim.families.services.workload.schema import (
    OTHERS,
    STATEMENTS,
    AgainKeys,
    AskKeys,
    BackoffKeys,
    CacheKeys,
    LockKeys,
    MaybeKeys,
    ServiceKeys,
    WayKeys,
)  # fmt: skip
from hwsim.formats import percent
from hwsim.machine import Machine, NoRoute, UnknownName
from hwsim.ops import OPS, CannotPlace, ExchangeOp, FetchOp, LoweredOp, Op, Scope
from hwsim.ops.sensitivity import lower_with_uncertainty
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, Tree, decode, did_you_mean, substitute
from hwsim.workload.load.draws import Uniform
from hwsim.workload.load.numbers import stream
from hwsim.workload.placement import refuse_endless
from hwsim.workload.programs import scope_among, scope_of

MOST_STEPS: Final = 2000  # maximum number of steps of a service, with repetitions expanded
_IN_ORDER: Final = ("queue", "after", "block", "reads", "writes", "updates", "pieces")  # keys without effect in a request
_CACHED: Final = "hit: 97 %, or entries: 1000000, of: 100000000"
_SHARE: Final = Uniform(0.0, 1.0)


@dataclass(frozen=True, slots=True)
class ParsedSteps:
    """The steps of a service, the number of its kept values, and the names of its branches."""

    steps: tuple[Step, ...]
    slots: int
    choices: tuple[str, ...]


class ServiceParser:
    """A parser of services that fills the tables shared by all services, and notes mistakes.

    Without a machine, ops are not lowered, and only the mistakes matter.
    """

    def __init__(self, machine: Machine | None, mistakes: Mistakes) -> None:
        self.machine, self.mistakes, self.prefix = machine, mistakes, ""
        self.services: list[str] = []  # names in the part, without the prefix
        self.served: list[ServedStatement] = []
        self.draws: list[StatementDraw] = []
        self.locks: list[ServiceLock] = []
        self.caches: list[ServiceCache] = []
        self._caches_at: dict[Place, int] = {}  # a cache inside `repeat` is one cache
        self._rates = {} if machine is None else rates_of(machine.capacities.values())
        self._first = self._number = 0  # index of the first service of the part, and of the current one
        self._locks: dict[str, int] = {}  # index by name in the part
        self._scope: Scope | None = None
        self._steps: list[Step] = []
        self._slots: dict[str, tuple[int, RandomValue]] = {}
        self._choices: list[str] = []
        self._shares = self._asks = 0  # random shares and calls of the current service so far
        self._statement = 0
        self._within: list[str] = []  # locks held at the current statement
        self._names: tuple[str, ...] = ()

    def begin(self, services: Sequence[str], prefix: str) -> None:
        """Begin a part with the names of its services, without its prefix."""
        self._first += len(self.services)
        self.services, self.prefix, self._locks = list(services), prefix, {}

    def read(self, number: int, keys: ServiceKeys) -> ParsedSteps:
        """Return the steps of the `number`-th service of the part."""
        self._number, self._steps, self._slots, self._choices, self._statement = self._first + number, [], {}, [], 0
        self._shares = self._asks = 0
        if self.machine is not None and not self._find_device(self.machine, keys):
            return ParsedSteps((End(),), 0, ())
        self._body(keys.request)
        self._steps.append(End())
        if len(self._steps) > MOST_STEPS:
            message = f"a request has {len(self._steps):,} steps with repetitions: expected at most {MOST_STEPS:,}"
            self.mistakes.add(keys.place, message, "use `times` of the op instead of `repeat`")
        return ParsedSteps(tuple(self._steps), len(self._slots), tuple(self._choices))

    def _find_device(self, machine: Machine, keys: ServiceKeys) -> bool:
        """Whether the machine has the device of a service; names of devices then refer to its node."""
        try:
            named = machine.select((keys.device,)) if keys.device else ()
        except UnknownName as error:
            self.mistakes.add(keys.place, error.message, error.hint)
            return False
        scope = scope_of(machine, named[0]) if len(named) == 1 else scope_among(machine, keys.request)
        self._scope = replace(scope, of_service=True)
        if len(named) > 1:
            self.mistakes.add(keys.place, f"expected one device, got {len(named)}: '{keys.device}'", f"device: {named[0]}")
        return True

    # ---- statements

    def _body(self, trees: Sequence[Tree]) -> None:
        for tree in trees:
            self._read_statement(tree)

    def _read_statement(self, tree: Tree) -> None:
        if not tree.is_mapping or len(tree.items()) != 1 or len(self._steps) > MOST_STEPS:
            if len(self._steps) <= MOST_STEPS:
                found = f"{len(tree.items())} keys" if tree.is_mapping else tree.what()
                self.mistakes.add(tree.place, f"expected a statement with one key, got {found}", "busy: {time: 3 ms}")
            return
        [(kind, inner)] = tree.items()
        self._statement += 1
        if kind == "together":
            self._together(inner)
        elif kind == "choose":
            self._choose(inner)
        elif kind in STATEMENTS:
            short = Tree({"service": inner}, inner.place) if kind == "ask" and isinstance(inner.value, str) else inner
            keys: Any = decode(short, STATEMENTS[kind], self.mistakes)
            if keys is not None:
                getattr(self, f"_{kind}")(keys, short)
        elif kind in OPS and not issubclass(OPS[kind], ExchangeOp | FetchOp):
            self._op(kind, inner)
        else:
            names = [entry for entry, op in OPS.items() if not issubclass(op, ExchangeOp | FetchOp)]
            hint = did_you_mean(kind, [*names, *STATEMENTS, *OTHERS])
            if kind in OPS:
                hint = "requests cannot take part in collectives" if issubclass(OPS[kind], ExchangeOp) else "remove it"
            elif kind in ("wait", "barrier", "call"):
                hint = "requests wait for each statement; `ask` calls a service, `together` runs statements concurrently"
            self.mistakes.add(tree.key_place(kind), f"requests have no statement '{kind}'", hint)

    def _together(self, tree: Tree) -> None:
        branches = tree.elements()
        if not tree.is_list or not all(branch.is_list for branch in branches):
            self.mistakes.add(tree.place, "`together`: expected a list of lists", "together: [[{ask: a}], [{ask: b}]]")
            return
        index = self._append(Fork((), 0))
        begins = []
        for branch in branches:
            begins.append(len(self._steps))
            self._body(branch.elements())
            self._steps.append(Join())
        self._steps[index] = Fork(tuple(begins), len(self._steps)) if begins else Jump(len(self._steps))

    def _choose(self, tree: Tree) -> None:
        if not tree.is_mapping or not tree.items():
            self.mistakes.add(
                tree.place, "`choose`: expected a mapping of names to branches", "choose: {small: {share: 90 %, do: [...]}, ...}"
            )
            return
        ways = {name: decode(entry, WayKeys, self.mistakes) for name, entry in tree.items()}
        if any(keys is None for keys in ways.values()):
            return
        totals = fsum(keys.share for keys in ways.values() if keys is not None)
        if not isclose(totals, 1.0, abs_tol=1e-6):
            self.mistakes.add(
                tree.place, f"expected shares that add up to 100 %, got {percent(totals, '.6g')}", "change one share"
            )
            return
        index = self._append(Jump(0))
        limits, to, counted, leaving = [], [], [], []
        total = 0.0
        for name, keys in ways.items():
            if keys is None:
                continue
            if name in self._choices:
                self.mistakes.add(
                    tree.key_place(name), f"two branches of this service have the name '{name}'", "rename one of them"
                )
            total += keys.share
            limits.append(min(total, 1.0))
            to.append(len(self._steps))
            counted.append(len(self._choices))
            self._choices.append(name)
            self._body(keys.do)
            leaving.append(self._append(Jump(0)))
        limits[-1] = 1.0
        self._steps[index] = Branch(self._share("choose"), tuple(limits), tuple(to), tuple(counted))
        for entry in leaving:
            self._steps[entry] = Jump(len(self._steps))

    def _maybe(self, keys: MaybeKeys, _: Tree) -> None:
        index = self._append(Jump(0))
        self._body(keys.do)
        self._steps[index] = Branch(self._share("maybe"), (1.0 - keys.ratio,), (len(self._steps),))

    def _cache(self, keys: CacheKeys, tree: Tree) -> None:
        number = self._caches_at.get(keys.place)
        if number is None:
            made = self._made_cache(keys, tree)
            if made is None:
                return
            number = self._caches_at[keys.place] = len(self.caches)
            self.caches.append(made)
        filling = self.caches[number].filling
        hit = filling.hit if filling is not None else keys.hit or 0.0
        index, draw = self._append(Jump(0)), self._share("cache")
        self._body(keys.miss)
        self._steps[index] = Branch(draw, (hit,), (len(self._steps),), cache=number)

    def _made_cache(self, keys: CacheKeys, tree: Tree) -> ServiceCache | None:
        if (keys.hit is None) == (keys.entries is None):
            self.mistakes.add(tree.place, "a cache needs either `hit` or `entries`", _CACHED)
            return None
        if keys.entries is None or keys.of is None:
            for key in ("of", "zipf", "empty_at"):
                if keys.entries is None and tree.get(key) is not None:
                    self.mistakes.add(tree.key_place(key), f"`{key}` has no effect with `hit`; it needs `entries`", _CACHED)
                    return None
            if keys.entries is not None:
                self.mistakes.add(tree.place, "`entries` needs `of`, the number of distinct items", _CACHED)
                return None
            return ServiceCache(self._number)
        emptied = tuple(ticks.femtoseconds(time) for time in keys.empty_at)
        return ServiceCache(
            self._number, (keys.entries, keys.of, keys.zipf), hit_rate_curve(keys.entries, keys.of, keys.zipf), emptied
        )

    def _lock(self, keys: LockKeys, tree: Tree) -> None:
        if keys.name in self._within:
            self.mistakes.add(tree.place, f"the lock '{keys.name}' is already held here: the request would never get it")
            return
        number = self._locks.setdefault(keys.name, len(self.locks))
        if number == len(self.locks):
            self.locks.append(ServiceLock(self.prefix + keys.name, keys.group))
        if (group := self.locks[number].group) != keys.group:
            self.mistakes.add(tree.place, f"the lock '{keys.name}' has `group: {group}` elsewhere", f"group: {group}")
        index = self._append(Jump(0))
        self._within.append(keys.name)
        self._body(keys.do)
        self._within.pop()
        self._steps.append(Give(number))
        self._steps[index] = Take(number, len(self._steps))

    def _repeat(self, keys: AgainKeys, _: Tree) -> None:
        for _turn in range(keys.times):
            if len(self._steps) > MOST_STEPS:
                return
            self._body(keys.do)

    def _ask(self, keys: AskKeys, tree: Tree) -> None:
        named = tree.get("service") or tree
        if keys.service not in self.services:
            self.mistakes.add(named.place, f"there is no service '{keys.service}'", did_you_mean(keys.service, self.services))
            return
        if keys.timeout is None and keys.retries and keys.refused == "fail":
            message = "`retries` has no effect: attempts have no `timeout`"
            self.mistakes.add(tree.key_place("retries"), message, "timeout: 50 ms, or refused: retry")
        service = self._first + self.services.index(keys.service)
        back = keys.backoff if isinstance(keys.backoff, BackoffKeys) else BackoffKeys(keys.backoff or 0.0, 1.0)
        for _ in range(keys.times if keys.times <= MOST_STEPS else MOST_STEPS + 1):
            step = Ask(
                service=service,
                key=stream(0, self._name, f"ask {self._asks}"),
                timeout=NONE if keys.timeout is None else ticks.femtoseconds(keys.timeout),
                retries=keys.retries,
                first=ticks.femtoseconds(back.first),
                times=back.times,
                jitter=back.jitter,
                draw=self._share("ask") if back.jitter and keys.retries else NONE,
                again=keys.refused == "retry",
            )
            self._asks += 1
            self._steps.append(step)

    # ---- ops

    def _op(self, kind: str, tree: Tree) -> None:
        if not tree.is_mapping:
            self.mistakes.add(tree.place, f"`{kind}`: expected a mapping, got {tree.what()}")
            return
        for key in _IN_ORDER:
            if tree.get(key) is not None:
                self.mistakes.add(tree.key_place(key), f"`{key}` has no effect in a request, which waits for each statement",
                                  "together: [[...], [...]]")  # fmt: skip
                return
        kept, tree = tree.get("as"), tree.without("as")
        drawn, mentioned = list(draws_in(tree)), [name for name in dict.fromkeys(kept_in(tree)) if name != "self"]
        if len(drawn) + len(mentioned) > 1:
            self.mistakes.add(
                tree.place, f"expected one random value in a statement, got {len(drawn) + len(mentioned)}", "make two statements"
            )
            return
        if kept is not None and (not drawn or not isinstance(kept.value, str)):
            self.mistakes.add(
                kept.place, "`as` has no effect: the statement has no random value to keep", "bytes: {lognormal: ...}, as: photo"
            )
            return
        unknown = [name for name in mentioned if name not in self._slots]
        if unknown:
            self.mistakes.add(
                tree.place, f"no earlier statement keeps '${unknown[0]}'", f"`as: {unknown[0]}` in an earlier statement"
            )
            return
        if not drawn and not mentioned:
            placed = self._placed(kind, tree, self.mistakes)
            if placed is not None:
                self._steps.append(Serve(self._add(kind, *placed), StepNumber()))
            return
        random = read_draw(drawn[0], self.mistakes) if drawn else self._slots[mentioned[0]][1]
        if random is not None:
            self._random(kind, tree, drawn[0] if drawn else None, mentioned[0] if mentioned else "", random, kept)

    def _random(self, kind: str, tree: Tree, drawn: Tree | None, slot: str, random: RandomValue, kept: Tree | None) -> None:
        """Add an op whose time is random."""

        def with_value(value: float) -> Tree:
            given = random.quantity(value)
            return substitute_draw(tree, drawn, given) if drawn is not None else self._known(tree, {slot: given})

        mean = random.distribution.mean
        placed = self._placed(kind, with_value(mean), self.mistakes)
        if placed is None:
            return
        before = len(self.mistakes)

        def time(value: float) -> float:
            result = self._placed(kind, with_value(max(value, mean * 1e-9)), self.mistakes)
            return 0.0 if result is None else self._body_s(result[1])

        lines = lines_of(random, time)
        if len(self.mistakes) > before:
            return
        cost = self._add(kind, *placed)
        if drawn is None:
            self._steps.append(Serve(cost, StepNumber(slot=self._slots[slot][0], lines=lines)))
            return
        number = self._draw(kind, random)
        if kept is None:
            self._steps.append(Serve(cost, StepNumber(draw=number, lines=lines)))
            return
        place = self._slots.setdefault(str(kept.value), (len(self._slots), random))[0]
        self._slots[str(kept.value)] = place, random
        self._steps += [Keep(number, place), Serve(cost, StepNumber(slot=place, lines=lines))]

    def _known(self, tree: Tree, names: Mapping[str, Any]) -> Tree:
        own = "self" if self._scope is None else self._scope.own
        return substitute(tree, {"self": own, **names}, self.mistakes, keep=())

    def _placed(self, kind: str, tree: Tree, mistakes: Mistakes) -> tuple[Op, LoweredOp] | None:
        before = len(mistakes)
        op: Any = decode(self._known(tree, {}), OPS[kind], mistakes, sure=True)
        if op is None or len(mistakes) > before:
            return None
        if self._scope is None:
            return op, LoweredOp("", "", None)
        try:
            placed = lower_with_uncertainty(op, self._scope)
            refuse_endless(placed)
        except (CannotCompute, CannotPlace, NoRoute, UnknownName, ticks.TooLong) as error:
            mistakes.add(op.place, error.message, error.hint)
            return None
        return op, placed

    def _body_s(self, placed: LoweredOp) -> float:
        return placed.time if placed.cost is None else placed.cost.demand.body(self._rates)

    def _add(self, kind: str, op: Op, placed: LoweredOp) -> int:
        cost = op.weighted(placed.cost)
        latency = 0.0 if cost is None else cost.demand.latency + placed.time
        self.served.append(
            ServedStatement(
                name=op.name or kind,
                kind=kind,
                device=placed.device,
                cost=cost,
                latency=ticks.femtoseconds(latency),
                body=ticks.femtoseconds(self._body_s(placed)),
                service=self._number,
            )
        )
        return len(self.served) - 1

    # ---- draws and steps

    def _draw(self, what: str, random: RandomValue) -> int:
        self.draws.append(StatementDraw((self._name, f"{self._statement} {what}"), random.distribution))
        return len(self.draws) - 1

    def _share(self, what: str) -> int:
        self._shares += 1
        self.draws.append(StatementDraw((self._name, f"{self._statement} {what} {self._shares}"), _SHARE))
        return len(self.draws) - 1

    @property
    def _name(self) -> str:
        return self.prefix + self.services[self._number - self._first]

    def _append(self, step: Step) -> int:
        self._steps.append(step)
        return len(self._steps) - 1
