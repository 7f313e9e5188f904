"""Links: the standards' numbers, from their own documents and not from our tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.links import Direct, Ethernet, Infiniband, LinkKind, Nvlink, Pcie, Qpi, Upi

WIDTHS = (1, 2, 4, 8, 12, 16, 32)
GENS = (1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize(
    ("link", "gigabytes"),
    [
        (Pcie(gen=1, lanes=16), 4.0),  # PCI-SIG: 250 MB/s a lane
        (Pcie(gen=2, lanes=16), 8.0),
        (Pcie(gen=3, lanes=16), 15.754),  # 985 MB/s a lane
        (Pcie(gen=4, lanes=4), 7.877),
        (Pcie(gen=5, lanes=16), 63.015),
        (Pcie(gen=6, lanes=16), 118.0),
        (Nvlink(gen=1, links=4), 80.0),  # P100: 160 GB/s both ways
        (Nvlink(gen=2, links=6), 150.0),  # V100: 300 GB/s both ways
        (Nvlink(gen=3, links=12), 300.0),  # A100: 600 GB/s
        (Nvlink(gen=4, links=18), 450.0),  # H100: 900 GB/s
        (Nvlink(gen=5, links=18), 900.0),  # B200: 1.8 TB/s
        (Qpi(links=1), 19.2),
        (Upi(links=1), 20.8),
        (Ethernet(rate=25e9 / 8), 3.125),
        (Infiniband(rate=400e9 / 8), 50.0),
    ],
)
def test_the_numbers_of_the_standards(link: LinkKind, gigabytes: float) -> None:
    assert link.peak() / 1e9 == pytest.approx(gigabytes, rel=1e-3)


@given(st.sampled_from(GENS), st.sampled_from(WIDTHS))
def test_pcie_grows_with_generation_and_lanes(gen: int, lanes: int) -> None:
    here = Pcie(gen=gen, lanes=lanes).peak()  # type: ignore[arg-type]
    assert here > 0
    if gen < 6:
        assert Pcie(gen=gen + 1, lanes=lanes).peak() > here  # type: ignore[arg-type]
    assert Pcie(gen=gen, lanes=32).peak() == pytest.approx(here * 32 / lanes)  # type: ignore[arg-type]


@given(st.floats(1, 1e15))
def test_a_bandwidth_as_given_is_taken_as_given(bandwidth: float) -> None:
    assert Pcie(bandwidth=bandwidth).peak() == bandwidth
    assert Direct(bandwidth=bandwidth).peak() == bandwidth
    assert Nvlink(bandwidth=bandwidth, links=2).peak() == 2 * bandwidth


@pytest.mark.parametrize(
    ("link", "keys"),
    [
        (Pcie(), ["kind"]),
        (Pcie(gen=3), ["kind"]),
        (Pcie(lanes=16), ["kind"]),
        (Pcie(gen=3, lanes=16, bandwidth=1e9), ["gen"]),
        (Pcie(lanes=16, bandwidth=1e9), []),  # the lanes count against the devices' budgets
        (Nvlink(), ["kind"]),
        (Nvlink(gen=2, bandwidth=1e9), ["gen"]),
        (Ethernet(rate=1e9), []),
    ],
)
def test_too_little_and_too_much_are_named(link: LinkKind, keys: list[str]) -> None:
    assert [key for key, _, _ in link.problems()] == keys
