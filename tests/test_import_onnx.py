"""ONNX graphs as models: networks of the library written as graphs and read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

import pytest
from click.testing import CliRunner

from hwsim.cli import main
from hwsim.importers.configs import read_file
from hwsim.models import load_network
from hwsim.models.architectures import Network
from hwsim.spec import SpecError

onnx = pytest.importorskip("onnx")
FLOAT = 1


class Graph:
    """A graph, node by node; weights have shapes alone."""

    def __init__(self, *shape: int) -> None:
        self.nodes: list[Any] = []
        self.stored: list[Any] = []
        self.shape, self.at, self.channels = shape, "image", shape[1]

    def weight(self, *dims: int) -> str:
        name = f"w{len(self.stored)}"
        tensor = onnx.TensorProto(name=name, data_type=FLOAT, dims=dims)
        tensor.data_location = onnx.TensorProto.EXTERNAL  # not stored at all
        tensor.external_data.add(key="location", value="none.bin")
        self.stored.append(tensor)
        return name

    def node(self, kind: str, *inputs: str, **attributes: Any) -> Self:
        out = f"v{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(kind, [self.at, *inputs], [out], name=f"{kind}{len(self.nodes)}", **attributes))
        self.at = out
        return self

    def conv(self, channels: int, kernel: int, stride: int = 1, *, norm: bool = True, relu: bool = True, groups: int = 1) -> Self:
        weight, half = self.weight(channels, self.channels // groups, kernel, kernel), kernel // 2
        bias = () if norm else (self.weight(channels),)
        self.node("Conv", weight, *bias, strides=[stride, stride], pads=[half] * 4, kernel_shape=[kernel, kernel], group=groups)
        self.channels = channels
        if norm:
            self.node("BatchNormalization", *(self.weight(channels) for _ in range(4)))
        return self.node("Relu") if relu else self

    def linear(self, units: int, width: int, *, relu: bool = False) -> Self:
        self.node("Gemm", self.weight(units, width), self.weight(units), transB=1)
        return self.node("Relu") if relu else self

    def block(self, *convs: tuple[int, int, int], project: bool, norm: bool = True, groups: int = 1) -> Self:
        """A residual block of (channels, kernel, stride)."""
        start, before = self.at, self.channels
        for at, (channels, kernel, stride) in enumerate(convs):
            many = groups if kernel == 3 else 1
            self.conv(channels, kernel, stride, norm=norm, relu=at < len(convs) - 1, groups=many)
        body, after = self.at, self.channels
        self.at, self.channels = start, before
        if project:
            self.conv(after, 1, max(stride for _, _, stride in convs), norm=norm, relu=False)
        around, self.at, self.channels = self.at, body, after
        self.node("Add", around)
        return self.node("Relu")

    def save(self, path: Path) -> Path:
        image = onnx.helper.make_tensor_value_info("image", FLOAT, list(self.shape))
        result = onnx.helper.make_tensor_value_info(self.at, FLOAT, None)
        graph = onnx.helper.make_graph(self.nodes, "net", [image], [result], self.stored)
        path.write_bytes(onnx.helper.make_model(graph).SerializeToString())
        return path


def resnet(counts: tuple[int, ...], *, deep: bool, groups: int = 1, width: int = 64) -> Graph:
    graph = Graph(1, 3, 224, 224).conv(64, 7, 2).node("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage, count in enumerate(counts):
        channels = 64 << stage
        inner = channels * width // 64 * groups if groups > 1 else channels
        for turn in range(count):
            stride = 2 if stage and not turn else 1
            convs = (
                ((inner, 1, 1), (inner, 3, stride), (4 * channels, 1, 1)) if deep else ((channels, 3, stride), (channels, 3, 1))
            )
            graph.block(*convs, project=not turn and (deep or stage > 0), groups=groups)
    return graph.node("GlobalAveragePool").node("Flatten").linear(1000, graph.channels)


def read(graph: Graph, tmp_path: Path) -> Network:
    _, model = read_file("onnx", graph.save(tmp_path / "net.onnx"))
    assert isinstance(model, Network)
    return model


@pytest.mark.parametrize(
    ("name", "graph"),
    [("resnet-18", resnet((2, 2, 2, 2), deep=False)), ("resnet-50", resnet((3, 4, 6, 3), deep=True)),
     ("resnext-50-32x4d", resnet((3, 4, 6, 3), deep=True, groups=32, width=4))],
)  # fmt: skip
def test_a_residual_network_is_that_of_the_library(name: str, graph: Graph, tmp_path: Path) -> None:
    found, ours = read(graph, tmp_path), load_network(name)
    assert found.parameters == ours.parameters
    assert found.forward_flop == ours.forward_flop
    assert [(unit.kind, unit.into, unit.out) for unit in found.chain()] == [
        (unit.kind, unit.into, unit.out) for unit in ours.chain()
    ]


def test_norms_that_are_folded_into_convolutions_leave_biases(tmp_path: Path) -> None:
    graph = Graph(8, 3, 32, 32).conv(16, 3, norm=False).block((16, 3, 1), (16, 3, 1), project=False, norm=False)
    found = read(graph.node("GlobalAveragePool").node("Flatten").linear(10, 16), tmp_path)
    assert found.parameters == 3 * 16 * 9 + 16 + 2 * (16 * 16 * 9 + 16) + 170


def test_branches_are_put_together_by_channels(tmp_path: Path) -> None:
    graph = Graph(1, 3, 32, 32).conv(16, 3)
    start, ends = graph.at, []
    for channels, kernel in ((8, 1), (16, 3)):
        graph.at, graph.channels = start, 16
        ends.append(graph.conv(channels, kernel).at)
    graph.at = ends[0]
    graph.node("Concat", ends[1], axis=1).node("GlobalAveragePool").node("Flatten").linear(10, 24)
    found = read(graph, tmp_path)
    assert [unit.out for unit in found.chain() if unit.kind == "concat"] == [(24, 32, 32)]


def test_linear_maps_alone_are_a_perceptron(tmp_path: Path) -> None:
    graph = Graph(1, 784).linear(256, 784, relu=True).linear(10, 256)
    made, model = read_file("onnx", graph.save(tmp_path / "net.onnx"))
    assert made.kind == "mlp"
    assert model.parameters == 203530


@pytest.mark.parametrize(
    ("graph", "said"),
    [(Graph(1, 3, 32, 32).conv(16, 3).node("LayerNormalization", "x"), "'LayerNormalization3' (LayerNormalization): no layer"),
     (Graph(1, 3, 0, 0).conv(16, 3), "cannot be inferred"),
     (Graph(1, 3, 32, 32).node("Conv", "nothing", dilations=[2, 2]), "has stored weights"),
     (Graph(1, 3, 32, 32).conv(8, 3).block((8, 3, 1), (8, 3, 1), (8, 3, 1), project=False), "3 convolutions of 3x3, 3x3, 3x3"),
     (Graph(1, 3, 32, 32).node("Softmax").node("Relu"), "follows no convolution")],
)  # fmt: skip
def test_what_no_layer_stands_for_is_refused_by_name(graph: Graph, said: str, tmp_path: Path) -> None:
    path = graph.save(tmp_path / "net.onnx")
    with pytest.raises(SpecError) as caught:
        read_file("onnx", path)
    assert said in str(caught.value)


def test_a_graph_that_leads_in_a_circle_is_refused(tmp_path: Path) -> None:
    graph = Graph(1, 3, 32, 32).conv(8, 3).conv(8, 3)
    graph.nodes[-1].output[0] = graph.nodes[0].output[0]
    with pytest.raises(SpecError, match=r"\(BatchNormalization\): it reads 'v0', which is made by itself or a later node"):
        read_file("onnx", graph.save(tmp_path / "net.onnx"))


@pytest.mark.parametrize("content", [b"", b"\x00\x01nothing", b"{}", b"\x08\x07" * 1000])
def test_a_file_that_is_no_graph_is_one_mistake(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    with pytest.raises(SpecError, match=r"no ONNX graph") as caught:
        read_file("onnx", path)
    assert len(caught.value.mistakes) == 1
    with pytest.raises(SpecError, match="cannot be read"):
        read_file("onnx", tmp_path / "none.onnx")


def test_the_command_writes_a_network_that_can_be_trained(tmp_path: Path) -> None:
    path, out = resnet((2, 2, 2, 2), deep=False).save(tmp_path / "net.onnx"), tmp_path / "net.yaml"
    found = CliRunner().invoke(main, ["import", "onnx", str(path), "-o", str(out)])
    assert found.exit_code == 0, found.output
    assert "parameters: 11,689,512" in found.stdout
    assert load_network(str(out)).parameters == load_network("resnet-18").parameters
    document = json.loads(CliRunner().invoke(main, ["import", "onnx", str(path), "--json"]).stdout)
    assert (document["model"]["kind"], document["parameters"]) == ("cnn", 11_689_512)
