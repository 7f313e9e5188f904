"""Tiers of a cache below the GPUs: no block is lost or made, and runs that are skipped are the iterations one by one."""

from __future__ import annotations

from typing import Any

from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from hwsim.families.serving.actors.router import LeastRequestsRouter
from hwsim.families.serving.actors.run import IterationRun
from hwsim.families.serving.actors.tiers import OffloadTier, OffloadTiers
from hwsim.families.serving.actors.unclocked import UnclockedService
from hwsim.families.serving.results.accounting import PARTS
from hwsim.families.serving.results.log import Log
from hwsim.families.serving.workload.requests import Request
from hwsim.families.serving.workload.settings import Settings
from hwsim.families.serving.workload.source import RequestSource
from tests.test_serving_copy import Linear, Watched, drawn, requests, servers


class Slow:
    """A lane on which a block of the host takes 3 us, and one of the disk 50 us more."""

    def __init__(self) -> None:
        self.until = 0

    def time(self, counts: tuple[int, ...]) -> int:
        return 1_000_000_000 + 3_000_017 * sum(counts) + 50_000_003 * sum(counts[1:])


class Kept(Watched):
    """A copy whose tiers are counted at every decision."""

    __slots__ = ()

    def next(self, now: int) -> IterationRun | None:
        run = super().next(now)
        assert isinstance(self.lower, OffloadTiers)
        for tier in self.lower.tiers:
            assert tier.used == sum(tier.held.values()) <= tier.most <= tier.blocks
            assert tier.stored >= tier.used
        return run


def play(rows: list[Request], keys: dict[str, Any], blocks: int, sizes: tuple[int, ...], copies: int, *, skip: bool) -> Any:
    found, log = Settings(**keys), Log(copies)
    tiers = [OffloadTiers(tuple(OffloadTier(f"tier{rank}", size) for rank, size in enumerate(sizes))) for _ in range(copies)]
    made = [Kept(number, found, blocks, log, lower=tiers[number]) for number in range(copies)]
    pace: list[Any] = [Linear(skip=skip)] * copies
    lanes: list[Any] = [Slow() for _ in made]
    end = UnclockedService(made, pace, found, RequestSource(rows), log, LeastRequestsRouter(made), lanes=lanes).play()
    assert all(copy.pool.free == blocks and not copy.requests and not copy.loading for copy in made)
    columns = log.finish()
    names = ("number", "copy", "begin", "first", "end", "cached", "arrival", *PARTS)
    rows_of = {name: columns[name].tolist() for name in names}
    assert rows_of["number"] == list(range(len(rows)))
    for index in range(len(rows)):
        assert sum(rows_of[name][index] for name in PARTS) == rows_of["end"][index] - rows_of["arrival"][index]
    rows_of = {name: column for name, column in rows_of.items() if name not in PARTS or name == "kv_load"}
    counts = [[(tier.stored, tier.brought, tier.used) for tier in stack.tiers] for stack in tiers]
    return end, [copy.iterations for copy in made], rows_of, log.below, counts


AGAIN = [
    (0, 200, 9, 1),
    (0, 200, 9, 2),
    (0, 200, 9, 3),
    (50_000_000, 220, 9, 1),
    (10, 210, 9, 2),
    (10, 290, 40, 3),
    (9, 80, 9, 1),
]


# The last but one is refused whole until its pieces have left for the tier, from which it can be brought back.
LEFT = [
    (6515, 184, 111, 0), (8624, 225, 87, 0), (6874, 255, 80, 0), (209, 186, 149, 0), (60000000, 110, 114, 1), (31087, 92, 120, 3),
    (42, 113, 150, 2), (353, 179, 71, 1), (104, 56, 31, 2), (3549, 236, 16, 2), (3549, 236, 16, 2), (18785, 279, 104, 1),
    (31087, 92, 120, 3), (6515, 184, 111, 0),
]  # fmt: skip


@settings(max_examples=60, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(
    requests, servers, st.integers(0, 30), st.sampled_from([(40,), (4,), (30, 300), (7, 25)]), st.integers(1, 2), st.booleans()
)
@example(AGAIN, {"prefixes": True, "block": 16, "budget": 300}, 0, (40,), 1, False)
@example(AGAIN, {"prefixes": True, "block": 16, "budget": 300, "ahead": 1}, 0, (7, 25), 1, True)
@example(
    LEFT,
    {
        "block": 1,
        "budget": 64,
        "sequences": 4,
        "admit": "ratio",
        "promise": (1.0, 0.2, 40, 60),
        "chunked": False,
        "groups": 3,
        "ahead": 1,
        "out": 100_000,
    },
    8,
    (4,),
    1,
    True,
)
def test_runs_are_the_iterations_one_by_one_where_pieces_are_brought_back(
    rows: list[tuple[int, int, int, int]], keys: dict[str, Any], more: int, sizes: tuple[int, ...], copies: int, late: bool
) -> None:
    keys = {**keys, "prefixes": True, "late": late, "gather": 0}
    blocks = -(-450 // keys["block"]) + more
    sizes = tuple(-(-16 * size // keys["block"]) for size in sizes)
    made = drawn(rows)
    assert play(made, keys, blocks, sizes, copies, skip=True) == play(made, keys, blocks, sizes, copies, skip=False)


def test_a_prompt_that_the_gpus_gave_up_comes_from_below_and_its_time_is_told() -> None:
    keys = {"prefixes": True, "block": 16}
    rows = [Request(number * 10**12, 160, 1, (key,), 160) for number, key in enumerate((1, 2, 3, 4, 1, 2))]
    for late, sizes, below in ((False, (100,), [20]), (True, (100,), [20]), (False, (10, 100), [0, 20]), (False, (5,), [])):
        _, _, found, brought, _ = play(rows, {**keys, "late": late}, 30, sizes, 1, skip=True)
        assert brought == [blocks * 16 for blocks in below]
        assert [bool(count) for count in found["cached"]] == [False] * 4 + [bool(below)] * 2
        expected = Slow().time((0, 10)[-len(sizes) :] if len(sizes) == 2 else (10,)) if below else 0
        assert found["kv_load"] == [0] * 4 + [expected] * 2
