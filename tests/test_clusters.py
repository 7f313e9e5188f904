"""Laws of random clusters with jobs and events: what is symmetrical takes equal times, whoever plays it.

HWSIM_LAWS is the number of pairs for each law.  Jitter stands apart: it is drawn by the name of a part.
"""

from __future__ import annotations

import copy
import os
import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest

from hwsim import api, engine
from hwsim.families.services.results.responses import expected_of
from hwsim.results.differences import differences
from hwsim.results.timeline import Timeline
from tests.random_clusters import random_cluster_pair
from tests.random_pairs import File, Pair

COUNT = int(os.environ.get("HWSIM_LAWS", "12"))
WORDS: Final = {
    "node": "m", "old": "a", "cpu": "zcpu", "gpu": "b-gpu-", "disk": "a-disk", "nic": "z-card", "sw": "c", "x": "w", "y": "v",
    "acc": "an-acc",
}  # fmt: skip
NAMED: Final = re.compile(r"(node|old|cpu|gpu|acc|disk|nic|sw|x|y)(\d*\*?)")
KEPT: Final = {"kind", "name", "hwsim", "link"}


def run(pair: Pair, **keys: Any) -> api.Run:
    return api.simulate(*copy.deepcopy(pair), expect=False, **keys)


def spans(run: api.Run) -> Counter[tuple[int, int]]:
    """Start and end of all ops; which comes first of those of equal jobs is a matter of names."""
    timeline = run.timeline
    return Counter(zip(timeline.start.tolist(), timeline.end.tolist(), strict=True))


def ends(run: api.Run) -> dict[str, float]:
    """When each job ends, and how long requests take in the mean."""
    return {job.name: job.end_s for job in run.jobs} | ({} if run.services is None else expected_of(run.services))


def renamed(text: str, words: Callable[[str, str], str]) -> str:
    found = [NAMED.fullmatch(part) for part in text.split(".")]
    return ".".join(words(match[1], match[2]) for match in found if match) if all(found) else text


def mapped(value: Any, words: Callable[[str, str], str], dice: random.Random | None = None) -> Any:
    """The same with other names of parts and values, and with the entries of mappings in another order."""
    if isinstance(value, dict):
        entries = [(renamed(key, words), node if key in KEPT else mapped(node, words, dice)) for key, node in value.items()]
        if dice is not None:
            dice.shuffle(entries)
        return dict(entries)
    if isinstance(value, list):
        return [mapped(node, words, dice) for node in value]
    return renamed(value, words) if isinstance(value, str) else value


# ---------------------------------------------------------------- the laws


def names_and_orders_change_nothing(dice: random.Random) -> None:
    pair = random_cluster_pair(dice)

    def word(name: str, number: str) -> str:
        return WORDS[name] + number

    other = Pair(*(mapped(document, word) for document in pair))
    for links in (other.machine["links"], *(part.get("links", []) for part in other.machine["parts"].values())):
        links.reverse()
    other.machine["parts"] = dict(reversed(other.machine["parts"].items()))
    other.workload["events"].reverse()
    before, after = run(pair), run(other)
    assert ends(after) == ends(before)
    assert spans(after) == spans(before)


def equal_nodes_are_equal(dice: random.Random) -> None:
    """The jobs and events of two nodes of a family change places."""
    pair = random_cluster_pair(dice)
    change = {"node0": "node1", "node1": "node0"}

    def word(name: str, number: str) -> str:
        return change.get(name + number, name + number)

    before, after = run(pair), run(pair._replace(workload=mapped(pair.workload, word)))
    assert ends(after) == ends(before)
    assert spans(after) == spans(before)


def later_is_later(dice: random.Random) -> None:
    pair, shift = random_cluster_pair(dice), dice.choice([1, 1000])

    def late(text: str) -> str:
        return f"{float(text.removesuffix(' s')) + shift!r} s"

    later = copy.deepcopy(pair.workload)
    for job in later["jobs"].values():
        job["start"] = late(job.get("start", "0 s"))
    for event in later["events"]:
        event["at"] = late(event["at"])
    before, after = ends(run(pair)), ends(run(pair._replace(workload=later)))
    assert {name: seconds - shift * (name in later["jobs"]) for name, seconds in after.items()} == pytest.approx(
        before, abs=1e-9, rel=1e-8
    )


def what_happens_after_the_end_changes_nothing(dice: random.Random) -> None:
    pair = random_cluster_pair(dice)
    before = run(pair)
    late: list[File] = [{"at": f"{before.timeline.makespan + 1} s", "part": part, "down": "1 h"} for part in ("sw", "node0.cpu")]
    after = run(pair._replace(workload={**pair.workload, "events": [*pair.workload["events"], *late]}))
    assert spans(after) == spans(before)


def early_or_late_all_that_is_down_delays_by_as_much(dice: random.Random) -> None:
    """All of the machine is down for longer than the only job takes: it ends as much later, but for latencies that go on."""
    pair = random_cluster_pair(dice)
    job = {**dice.choice(list(pair.workload["jobs"].values())), "start": "0 s"}
    if "services" in job:
        return
    families = [name for name in pair.machine["parts"] if name != "sw"]
    parts = {family: pair.machine["parts"][family]["parts"] for family in families}
    everything = ["sw", *(f"{family}*.{part}{'*' * (part == 'gpu')}" for family in families for part in parts[family])]

    def makespan(*events: File) -> float:
        return run(pair._replace(workload={**pair.workload, "jobs": {"job": job}, "events": list(events)})).timeline.makespan

    before = makespan()
    delays = [makespan({"at": f"{t * before!r} s", "part": everything, "down": "10 s"}) - before for t in (0.1, 0.3, 0.5, 0.7)]
    assert all(10 - before <= delay <= 10 + 0.1 * before + 1e-9 for delay in delays if before)


def every_engine_says_the_same(dice: random.Random) -> None:
    lowered = api.prepare(*copy.deepcopy(random_cluster_pair(dice)))
    found: list[Timeline] = [
        engine.simulate(lowered.graph, changes=lowered.changes, **keys)  # type: ignore[arg-type]
        for keys in ({"fast": "never"}, {"fast": "always"}, {"which": "simpy"})
    ]
    for other in found[1:]:
        assert other.start.tolist() == found[0].start.tolist()
        assert other.end.tolist() == found[0].end.tolist()


def folded_is_unfolded(dice: random.Random) -> None:
    pair = random_cluster_pair(dice)
    folded, whole = run(pair, fold="always"), run(pair, fold="never")
    assert ends(folded) == ends(whole)
    if folded.timeline.flat.graph.alike is not None:
        assert not list(differences(folded.timeline, whole.timeline))


LAWS: Final[tuple[Callable[[random.Random], None], ...]] = (
    names_and_orders_change_nothing,
    equal_nodes_are_equal,
    later_is_later,
    what_happens_after_the_end_changes_nothing,
    early_or_late_all_that_is_down_delays_by_as_much,
    every_engine_says_the_same,
    folded_is_unfolded,
)


def check(law: Callable[[random.Random], None], seeds: range) -> None:
    for seed in seeds:
        try:
            law(random.Random(f"{law.__name__} {seed}"))
        except AssertionError as broken:
            raise AssertionError(f"{law.__name__.replace('_', ' ')}: seed {seed}") from broken


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_laws_of_random_clusters(law: Callable[[random.Random], None]) -> None:
    check(law, range(COUNT))


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_laws_of_many_more_random_clusters(law: Callable[[random.Random], None]) -> None:
    check(law, range(1_000_000, 1_000_000 + 6 * COUNT))
