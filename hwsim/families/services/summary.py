"""Services under load: lines and the ladder of the summary, and entries of the JSON document."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from hwsim.families.services.results.answers import Answers, Held, Rung, Services, Wait
from hwsim.families.services.results.unsure import work_interval
from hwsim.formats import format_change, format_count, format_quantity, format_share, percent
from hwsim.results.batches import Known, Settled
from hwsim.results.result import Result
from hwsim.views.kit.document import picked
from hwsim.views.kit.table import Column, aligned

RUNGS: Final = 8  # of the ladder, shown
MUCH: Final = 100  # times the lowest limit: higher ones are counted alone
SHARES: Final = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
WIDE: Final = 0.5  # half of an interval, as a part of the number: wider ones are printed as their ends
EXACT: Final = 1e-6  # half of an interval, as a part of the number: a narrower one is of rounding alone
LEAST: Final = 0.01  # of a time: shorter waits are not listed
PLAIN: Final = (
    "name", "span_s", "came", "outside", "offered_per_s", "served", "refused", "failed", "wasted", "dropped", "timeouts",
    "asked_again", "growth_per_s", "there_mean", "there_most", "waiting_mean", "waiting_most", "closed", "workers", "left",
)  # fmt: skip


def lines(services: Services) -> Iterator[tuple[str, str]]:
    """(title, text) of each line of the summary."""
    for entry in services.answers:
        for number, text in enumerate(_of(entry)):
            yield (f"{entry.name}" if number == 0 else ""), text
    for held in services.caches:
        yield "cache", _held(held)
    if not services.never:
        yield from _limits(services)
    if services.stuck:
        yield (
            "DEADLOCK",
            f"requests wait for each other for ever: {services.stuck}; a `timeout` of `ask`, or more workers, frees them",
        )
    for name in services.never:
        yield "DEADLOCK", f"a request of {name} asks on without an end: services ask each other in a circle"


def _held(held: Held) -> str:
    popular = "all alike" if not held.zipf else f"the k-th as popular as 1 / k^{held.zipf:g}"
    filled = f", {_rate(held.full)} lookups after it was empty" if held.full >= 1 else ""
    return (
        f"{held.service} finds {format_share(held.hit)} of {held.of:,} things, {popular}, with {held.entries:,} entries{filled}"
    )


def unsure(result: Result) -> Iterator[tuple[str, str]]:
    """The line that says how well the machine's numbers are known."""
    sure = work_interval(result)
    if sure.half >= EXACT:
        low, high = math.expm1(-sure.half), math.expm1(sure.half)
        text = f"by the machine's numbers the work of a request takes {format_change(low)} to {format_change(high)} of this"
        yield "interval", f"{text} (--interval: with its waits); +- below is of the sampling alone"


def between(fast: Services, slow: Services) -> Iterator[tuple[str, str]]:
    """Nine of ten such machines: with all work as fast, and as slow, as the ends of its interval."""
    for first, second in zip(fast.answers, slow.answers, strict=True):
        if first.latency is None:
            yield "9 of 10", f"{first.name}: no steady state at either end"
        elif second.latency is None:
            low = ", ".join(f"{name} from {_time(first.latency.at(share).value)}" for name, share in SHARES)
            yield "9 of 10", f"{first.name}: {low}; at the slow end it cannot keep up"
        else:
            ends = [
                f"{name} {_time(first.latency.at(share).value)} to {_time(second.latency.at(share).value)}"
                for name, share in SHARES
            ]
            yield "9 of 10", f"{first.name}: {', '.join(ends)}, by the machine's numbers"


def _of(entry: Answers) -> Iterator[str]:
    closed = " by clients that wait for their answers" if entry.closed and entry.outside else ""
    rate = f" at {_rate(entry.offered_per_s)}/s" if entry.offered_per_s and not entry.closed else ""
    yield f"{entry.came:,} requests{rate}{closed}; {_rate(entry.per_s)} answers/s" + (
        f", {_rate(entry.goodput)} in time" if entry.good < entry.served else ""
    )
    lost = [
        (entry.refused, "refused"), (entry.failed, "given up or failed"), (entry.wasted, "worked on for nobody"),
        (entry.dropped, "thrown away at their turn"), (entry.timeouts, "attempts timed out"), (entry.asked_again, "asked again"),
    ]  # fmt: skip
    if any(count for count, _ in lost):
        shares = [f"{count:,} {label} ({format_share(count / max(entry.came, 1))})" for count, label in lost if count]
        yield ", ".join(shares)
    if entry.growth_per_s > 0:
        yield (
            f"NO STEADY STATE: {_rate(entry.growth_per_s)} more of them are there every second: the time of an answer has "
            "no percentiles; see the limits below"
        )
    elif entry.latency is not None:
        yield _latency(entry.latency) if entry.steady else _as_it_was(entry.latency)
        if entry.latency.dropped:
            left = format_share(entry.latency.dropped / entry.served)
            yield f"without the first {entry.latency.dropped:,} answers ({left}), of the warm-up"
        if entry.closed and entry.outside:
            yield (
                "a client that waits asks less while the service is slow: percentiles of an open load of this rate are longer "
                "(coordinated omission)"
            )
    if entry.there_most:
        line = (
            f"; in line for a worker {format_count(entry.waiting_mean)}, {entry.waiting_most:,} at most"
            if entry.workers is not None
            else ""
        )
        yield f"there at once {format_count(entry.there_mean)} in the mean, {entry.there_most:,} at most{line}"
    if entry.waits_above:
        yield f"above p99: {_waits(entry.waits_above)}"


def _latency(settled: Settled) -> str:
    parts = [f"mean {_known(settled.mean)}", *(f"{name} {_known(settled.at(share))}" for name, share in SHARES)]
    text = f"{', '.join(parts)}, longest {_time(settled.most)}"
    if settled.short:
        named = ["the mean" if share <= 0 else f"p{100 * share:g}" for share in settled.short]
        enough = (
            f": {settled.needed:,} requests would do" if settled.needed is not None and settled.needed > settled.count else ""
        )
        text += f"; too short for {' and '.join(filter(None, [', '.join(named[:-1]), named[-1]]))}{enough}"
    return text


def _as_it_was(settled: Settled) -> str:
    """Without intervals: another run has the same events."""
    parts = [f"mean {_time(settled.mean.value)}", *(f"{name} {_time(settled.at(share).value)}" for name, share in SHARES)]
    return f"{', '.join(parts)}, longest {_time(settled.most)}; with what happens in the run"


def _known(known: Known) -> str:
    if known.half <= WIDE:
        return f"{_time(known.value)} +- {percent(known.half if known.half >= EXACT else 0.0, '.2g')}"
    low = _time(known.low)
    return f"{_time(known.value)} ({f'{low} to {_time(known.high)}' if math.isfinite(known.high) else f'{low} or more'})"


def _waits(waits: tuple[Wait, ...]) -> str:
    total = math.fsum(wait.seconds for wait in waits)
    shown = [wait for wait in waits if wait.seconds >= LEAST * total]
    return f"{_time(total)} each, of it " + ", ".join(
        f"{_time(wait.seconds)} {'its own work' if wait.what == 'work' else f'waiting for {wait.what}'}" for wait in shown
    )


def _limits(services: Services) -> Iterator[tuple[str, str]]:
    if not services.ladder:
        return
    first = services.ladder[0]
    over = [rung for rung in services.ladder if rung.utilisation is not None and rung.utilisation >= 1]
    allowed = f"{first.called} allow{'' if first.kind == 'workers' else 's'} {_rate(first.limit_per_s)}/s of {first.service}"
    if over:
        wanted = format_share(first.utilisation or 0.0)
        yield "limit", f"{allowed}, and {wanted} of that comes"
    else:
        yield "limit", allowed


def table(services: Services) -> Iterator[str]:
    """The ladder of limits."""
    if not services.ladder or services.never:
        return
    most = MUCH * services.ladder[0].limit_per_s
    near = [rung for rung in services.ladder if rung.limit_per_s <= most]
    rows = [rung for number, rung in enumerate(near) if not _repeats(near, number)][:RUNGS]
    yield from aligned([
        Column("limit", [rung.called for rung in rows], right=False),
        Column("a request takes", [_time(rung.per_request_s) for rung in rows]),
        Column("allows", [f"{_rate(rung.limit_per_s)}/s" for rung in rows]),
        Column("of", [rung.service for rung in rows], right=False),
        Column("asked", ["" if rung.utilisation is None else format_share(rung.utilisation) for rung in rows]),
        Column("used", ["" if rung.used is None else format_share(rung.used) for rung in rows]),
    ])  # fmt: skip
    if len(services.ladder) > len(rows):
        yield f"  and {len(services.ladder) - len(rows)} more, which allow more"


def _repeats(rungs: list[Rung], number: int) -> bool:
    """Whether a resource before it is taken just as much: another piece of the same way."""
    rung = rungs[number]
    before = rungs[number - 1] if number else None
    return (
        before is not None
        and rung.kind == before.kind == "capacity"
        and math.isclose(rung.per_request_s, before.per_request_s, rel_tol=1e-9)
    )


def _rate(per_s: float) -> str:
    return format_quantity(per_s, "1/s").removesuffix("1/s").strip()


def _time(seconds: float) -> str:
    return format_quantity(seconds, "s")


def as_dict(services: Services, half: float) -> dict[str, Any]:
    """The entry of the document; keys end in their unit; half: of the interval of their work."""
    return {
        "services": [_entry(each) for each in services.answers],
        "ladder": [
            rung._asdict() | {"limit_per_s": rung.limit_per_s if math.isfinite(rung.limit_per_s) else None}
            for rung in services.ladder
        ],
        "alone_s": dict(services.alone),
        "end_s": services.end_s,
        "work_half": half,
        "stuck": services.stuck,
        "never": list(services.never),
        "caches": [held._asdict() for held in services.caches],
    }


def _entry(entry: Answers) -> dict[str, Any]:
    settled = entry.latency
    return {
        **picked(entry, *PLAIN),
        "answers_per_s": entry.per_s,
        "goodput_per_s": entry.goodput,
        "latency": None
        if settled is None
        else {
            "count": settled.count,
            "warm_up": settled.dropped,
            "warm_up_part": settled.dropped / entry.served,
            "mean_s": _ends(settled.mean),
            **{f"{name}_s": _ends(settled.at(share)) for name, share in SHARES},
            "max_s": settled.most,
            "settled": settled.settled,
            "too_short_for": list(settled.short),
            "needed": settled.needed,
        },
        "waits_s": {wait.what: wait.seconds for wait in entry.waits},
        "waits_above_p99_s": {wait.what: wait.seconds for wait in entry.waits_above},
        "course": [stretch._asdict() for stretch in entry.course],
    }


def _ends(known: Known) -> dict[str, float | None]:
    """A number and where it may be; no end where the run is too short to tell."""
    return {name: value if math.isfinite(value) else None for name, value in asdict(known).items()}
