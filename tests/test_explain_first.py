"""The first sentence of an explanation names what takes longest, its share and what binds it, for every pair of the library."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from hwsim import api
from hwsim.spec import find, names, read
from hwsim.views.explain.explanation import explain
from hwsim.views.explain.say import text


def pairs() -> list[tuple[str, str]]:
    """Workloads of the library on the machines of their expectations."""
    named = [(tree.get("expect"), name) for name in names("workload") if (tree := read(find("workload", name))).is_mapping]
    found = [(expect.text("machine"), name) for expect, name in named if expect is not None and expect.is_mapping]
    return [(machine, name) for machine, name in found if machine]


def first_sentence_is_about_ops(machine: str, name: str) -> None:
    """An op or two with its device, its share of the run, and what binds it."""
    run = api.simulated(machine, name)
    if run.only_requests:
        line = " ".join(text(explain(replace(run, again=None))).split("\n\n")[1].split())
        assert re.match(
            r"\S+: a request takes .+ on average; above p99 it takes .+, \S+ % of it (service|timed-out attempts|waiting for )",
            line,
        ), line
        return
    found = explain(replace(run, again=None))
    first, row = found.sentences[0], found.activities.rows[0]
    said = re.fullmatch(
        r"(.+?) takes (all )?\S+ \w+(:.+?)?( \([\d.]+ %\))?( do not)?(, (bound by .+|a fixed duration))?\.", first
    )
    assert said, first
    assert said[1].strip("`").lower() == row.name.lower()
    assert row.path_fs == max(activity.path_fs for activity in found.activities.rows)
    assert said[6] or (row.bound is not None and row.bound.term == row.name), first
    assert (said[2] is None) == (said[4] is not None)


@pytest.mark.parametrize(("machine", "name"), random.Random(3).sample(pairs(), 8))
def test_the_first_sentence_names_an_op_its_share_and_what_binds_it(machine: str, name: str) -> None:
    first_sentence_is_about_ops(machine, name)


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "name"), pairs())
def test_the_first_sentence_of_every_pair_of_the_library_does(machine: str, name: str) -> None:
    first_sentence_is_about_ops(machine, name)
