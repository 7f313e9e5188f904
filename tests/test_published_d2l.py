"""The text's notebooks: what other cells of the same builds say of the host, and what each cell takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwsim.models.architectures.cnn import Cnn
from hwsim.models.library import load_network
from published import cnn_d2l
from published import eager_d2l as eager
from published.cnn_training import data_parallel_step


def parameters(name: str) -> int:
    network = load_network(name)
    assert isinstance(network, Cnn)
    return sum(unit.parameters for unit in network.chain())


@pytest.mark.parametrize(
    ("name", "count"),
    [("d2l-alexnet", 46_764_746), ("d2l-vgg", 43_093_322), ("d2l-nin", 1_992_166), ("d2l-densenet", 758_226 - 2 * 248)],
)
def test_networks_of_the_text_have_their_parameters(name: str, count: int) -> None:
    assert parameters(name) == count


def test_norm_and_activation_come_before_a_convolution_that_is_last() -> None:
    network = load_network("d2l-densenet")
    assert isinstance(network, Cnn)
    units = [unit for unit in network.chain() if unit.name.startswith("2.0.1.0.conv")]
    assert [unit.kind for unit in units] == ["norm", "activation", "conv"]
    assert {unit.into[0] for unit in units} == {64}
    assert units[-1].out[0] == 32


@pytest.mark.parametrize("builds", [eager.PYTORCH, eager.TENSORFLOW, eager.PYTORCH[:1], eager.PYTORCH[1:]])
def test_the_cells_that_the_times_are_from_come_out_as_printed(builds: tuple[str, ...]) -> None:
    host = eager.host_of(builds)
    assert host.by_hand("gru") == pytest.approx(eager.TOKENS / eager.middle(builds, "gru by hand"))
    assert host.of_library("rnn") == pytest.approx(eager.TOKENS / eager.middle(builds, "rnn"))
    tensorflow = builds == eager.TENSORFLOW
    assert host.optimizer("rmsprop", tensorflow, by_hand=True) == pytest.approx(eager.middle(builds, "rmsprop by hand"))
    assert min(host.op, host.update, host.call, host.layer) > 0


def test_a_convolution_of_an_eager_framework_waits_for_its_images() -> None:
    small, large = (cnn_d2l.NOTEBOOKS[name] for name in ("lenet", "resnet"))
    software = cnn_d2l.software_of(eager.PYTORCH)
    kernels = data_parallel_step(cnn_d2l._network(large), 256, "fp32", cnn_d2l._times(software), software).seconds
    assert cnn_d2l._step(large, software) - kernels == pytest.approx(4 * 256 * 96 * 96 / cnn_d2l.PAGEABLE)
    assert cnn_d2l._step(small, software) < 5e-3


def test_cells_of_a_build_are_predicted_from_the_other(reference_data: Path) -> None:
    found = cnn_d2l.residuals(reference_data)
    assert {residual.regime for residual in found} == {"eager"}
    left_out = [residual for residual in found if residual.case == "source"]
    assert {residual.unit for residual in left_out} == set(eager.PYTORCH)
    assert not any(cnn_d2l.FIRST in residual.row for residual in found)
    assert sorted(abs(residual.log) for residual in left_out)[len(left_out) // 2] < 0.2
