"""The time of one iteration of a served model: lines between knots, graphs, exchanges."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.api import load_machine
from hwsim.machine import Machine
from hwsim.models import cluster_of, load_framework, load_transformer
from hwsim.models.cluster import exchanging
from hwsim.models.iteration import Iterations
from hwsim.models.kernel_times import KernelTimes

GRAPHS = (1, 2, 4, *range(8, 257, 8))


@cache
def node() -> Machine:
    return load_machine("dgx-h100")


@cache
def iterations(model: str = "llama-3-8b", tp: int = 1, graphs: tuple[int, ...] = ()) -> Iterations:
    framework = load_framework("vllm")
    exchange = exchanging(node(), node().devices_of("gpu"), framework.all_reduce)
    times = KernelTimes(cluster_of(node()).gpu, framework)
    return Iterations(load_transformer(model), times, tp, "bf16", graphs, exchange)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.floats(1, 20000), st.floats(0, 1))
def test_a_line_is_an_iteration_of_answers_until_its_end(answers: int, context: float, part: float) -> None:
    served = iterations(graphs=GRAPHS)
    line = served.line(answers, context)
    further = context + part * (line.until - context)
    assert line.until > context
    assert line.seconds == pytest.approx(served.seconds((), answers, context, answers), rel=1e-9)
    expected = served.seconds((), answers, further, answers)
    assert line.seconds + line.slope * (further - context) == pytest.approx(expected, rel=1e-9)


@given(st.integers(1, 256))
def test_a_graph_takes_as_long_as_it_is_large(answers: int) -> None:
    padded, exact = iterations(graphs=GRAPHS), iterations()
    size = padded.padded(answers)
    assert size == min(each for each in GRAPHS if each >= answers)
    assert padded.linear(answers) == exact.linear(size)
    assert padded.answers(answers, 1000.0) == exact.answers(answers, 1000.0)


def test_beyond_the_largest_graph_nothing_is_padded() -> None:
    served = iterations(graphs=GRAPHS)
    assert served.padded(256) == 256
    assert served.padded(257) == 257
    assert served.padded(0) == 0


@pytest.mark.parametrize("tp", [2, 8])
def test_exchanges_are_two_sums_of_each_layer(tp: int) -> None:
    served = iterations("llama-3-70b", tp)
    once = cluster_of(node()).reduced(16 * 8192 * 2.0, tp, "vllm")
    assert served.exchanged(16) == pytest.approx(2 * 80 * once)
    assert served.seconds((), 16, 500.0, 16) == pytest.approx(served.of((), 16, 500.0, 16).seconds + 2 * 80 * once)
