"""A network cut into stages, and its layers split by channels."""

from __future__ import annotations

from typing import Final

import pytest

from hwsim.models.architectures.split import blocks, split, stages
from hwsim.models.architectures.unit_layers import layer_of
from hwsim.models.architectures.units import size
from hwsim.models.library import load_network

NETWORKS: Final = ("alexnet", "vgg-16", "resnet-18", "resnet-50", "inception-v3", "googlenet", "resnext-50-32x4d")


def test_alexnets_two_halves_meet_at_the_third_convolution_and_before_the_linear_maps() -> None:
    network = load_network("alexnet-2012")
    assert network.parameters == 60_965_224
    met = [piece.unit.name for piece in split(network.chain(), 2) if piece.gathers]
    assert met == ["4.conv", "8.linear", "9.linear", "10.linear"]


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("gpus", [2, 4])
def test_the_gpus_of_a_split_share_parameters_and_operations(name: str, gpus: int) -> None:
    units = load_network(name).chain()
    pieces = split(units, gpus)
    assert gpus * sum(piece.unit.parameters for piece in pieces) == sum(unit.parameters for unit in units)
    assert gpus * sum(piece.unit.flop for piece in pieces) == pytest.approx(sum(unit.flop for unit in units))


@pytest.mark.parametrize("name", NETWORKS)
def test_one_gpu_gathers_nothing(name: str) -> None:
    units = load_network(name).chain()
    pieces = split(units, 1)
    assert tuple(piece.unit for piece in pieces) == units
    assert not any(piece.gathers or piece.scatters for piece in pieces)


def test_a_block_gathers_what_comes_in_once() -> None:
    gathered = [piece for piece in split(load_network("resnet-50").chain(), 2) if piece.unit.name.startswith("3.0.")]
    assert [piece.unit.name for piece in gathered if piece.gathers] == ["3.0.conv0", "3.0.conv1", "3.0.conv2"]
    assert all(piece.gathers == size(piece.unit.into) for piece in gathered if piece.gathers)


def test_classes_that_do_not_divide_are_computed_by_everybody() -> None:
    *_, last = split(load_network("d2l-resnet-18").chain(), 4)
    assert (last.unit.kind, last.unit.out[0], last.scatters) == ("linear", 10, 0)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_stages_are_all_of_the_network_in_order(name: str, count: int) -> None:
    units = load_network(name).chain()
    found = stages(units, count, lambda unit: unit.flop)
    assert len(found) == count
    assert all(found)
    assert tuple(unit for stage in found for unit in stage) == units


def test_no_other_cut_has_a_shorter_longest_stage() -> None:
    units = load_network("resnet-18").chain()
    cut = blocks(units)
    weights = [sum(unit.flop for unit in block) for block in cut]
    best = min(
        max(sum(weights[:a]), sum(weights[a:b]), sum(weights[b:])) for a in range(1, len(cut)) for b in range(a + 1, len(cut))
    )
    found = stages(units, 3, lambda unit: unit.flop)
    assert max(sum(unit.flop for unit in stage) for stage in found) == pytest.approx(best)


def test_what_is_done_in_place_is_not_kept_twice() -> None:
    units = load_network("resnet-50").chain()
    kept = sum(layer_of(unit, 1, "fp32").kept_bytes for unit in units)
    assert kept == pytest.approx(86e6, rel=0.1)  # two arrays a convolution, its own input and that of its norm
