"""ONNX graphs of networks of convolutions and of perceptrons, as models.

The graph is followed from its image to its classes. Where a value goes several ways, they are followed to the node at which all
of them meet: a sum is a residual block, a concatenation branches. What the model has must be what the file has: as many
parameters, and as many operations by the shapes that `onnx` infers; else it is refused.

**Source**: onnx 1.23, operators of opset 7 to 25.
**Range**: convolutions, batch norms, pools, linear maps, sums of two and three convolutions, concatenations of channels. A
transformer is no such network: its `config.json` says more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hwsim.importers.configs.onnx_blocks import NoLayer, attributes, entry_of, residual
from hwsim.models.configs import Told, Translated
from hwsim.models.library import read_network
from hwsim.spec.mistakes import Place, SpecError
from hwsim.spec.tree import tree_of

MAX_BYTES: Final = 2**31  # of a protobuf
MAX_NODES: Final = 20_000
PASSED: Final = frozenset({"Flatten", "Reshape", "Identity", "Dropout", "Softmax", "LogSoftmax", "Squeeze", "Unsqueeze", "Cast"})
BESIDE: Final = frozenset({"Shape", "Constant"})  # what they read is no part of the network
ACTIVATIONS: Final[Mapping[str, str]] = {
    "Relu": "relu",
    "Clip": "relu",
    "LeakyRelu": "relu",
    "Sigmoid": "sigmoid",
    "Tanh": "sigmoid",
}


def read_graph(path: Path) -> Translated:
    """The model of a file.

    Raises:
        SpecError: it cannot be read, `onnx` is not installed, or the graph is no network that a model can say.
    """
    place = Place(str(path), 0, 0)
    model = _loaded(path, place)
    graph = _Graph(model.graph)
    try:
        keys = graph.keys()
        graph.check(keys)
    except NoLayer as error:
        raise SpecError.of(place, str(error), error.hint) from None
    kind = "mlp" if "units" in keys else "cnn"
    stated = {key: Told(value, "the graph", place) for key, value in keys.items()}
    return Translated(path.stem, f"ONNX, {len(model.graph.node)} nodes", stated, tuple(graph.notes), (), (), place, kind)


def _loaded(path: Path, place: Place) -> Any:
    """The graph with inferred shapes; weights that lie in other files are not read."""
    try:
        import onnx
        from onnx import shape_inference
    except ImportError:
        raise SpecError.of(place, "reading ONNX needs the package onnx", "pip install 'hwsim[onnx]'") from None
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SpecError.of(place, "the file is larger than any ONNX graph, 2 GB")
        model = onnx.load(str(path), load_external_data=False)
        if not model.graph.node:
            raise SpecError.of(place, "this is no ONNX graph, or one without nodes")
        if len(model.graph.node) > MAX_NODES:
            raise SpecError.of(place, f"the graph has more than {MAX_NODES:,} nodes")
        return shape_inference.infer_shapes(model)
    except OSError as error:
        raise SpecError.of(place, f"the file cannot be read: {error.strerror or error}") from None
    except SpecError:
        raise
    except Exception as error:  # noqa: BLE001  protobuf and onnx raise their own kinds, by version
        raise SpecError.of(place, f"this is no ONNX graph: {' '.join(str(error).split())[:200]}") from None


MEET: Final = ("Add", "Concat")


class _Graph:
    """A graph while it is followed.

    Attributes:
        weights: shapes of stored arrays, by name; users: nodes that read a value.
    """

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.weights: dict[str, tuple[int, ...]] = {each.name: tuple(each.dims) for each in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant":
                stored = next((each.t for each in node.attribute if each.name == "value"), None)
                self.weights[node.output[0]] = () if stored is None else tuple(stored.dims)
        self.users: dict[str, list[Any]] = {}
        for node in graph.node:
            for name in dict.fromkeys(node.input):
                if node.op_type not in BESIDE:
                    self.users.setdefault(name, []).append(node)
        self.shapes = {each.name: _dims(each) for each in (*graph.input, *graph.value_info, *graph.output)}
        self.place = {id(node): at for at, node in enumerate(graph.node)}
        self.notes: list[str] = []
        self.normed = False
        self.parameters = 0
        self.flop = 0.0

    def keys(self) -> dict[str, Any]:
        """Keys of the model.

        Raises:
            NoLayer: a node that no layer stands for.
        """
        self._in_order()
        inputs = [each for each in self.graph.input if each.name not in self.weights]
        if len(inputs) != 1:
            raise NoLayer(f"the graph has {len(inputs)} inputs: a network has one image")
        shape = self.shapes[inputs[0].name]
        self.normed = any(node.op_type == "BatchNormalization" for node in self.graph.node)
        entries = list(self.followed(inputs[0].name, None))
        if all(list(entry) == ["linear"] for entry in entries) and entries:
            return self._perceptron(shape, [entry["linear"] for entry in entries])
        if len(shape) != 4 or not all(shape[1:]):
            raise NoLayer(f"the input is {_said(shape)}: an image is batch x channels x height x width, the last three stated")
        return {"input": list(shape[1:]), "norm": self.normed, "activation": "relu", "layers": entries}

    def _in_order(self) -> None:
        """Refuse a graph whose nodes do not follow what they read, as ONNX has it: it may lead in a circle."""
        made = {name: at for at, node in enumerate(self.graph.node) for name in node.output if name}
        for at, node in enumerate(self.graph.node):
            if late := next((name for name in node.input if made.get(name, -1) >= at), None):
                raise NoLayer(f"{_called(node)}: it reads '{late}', which is made by itself or a later node")

    def _perceptron(self, shape: tuple[int, ...], linear: Sequence[dict[str, Any]]) -> dict[str, Any]:
        units = [math.prod(shape[1:]), *(each["units"] for each in linear)]
        activations = {each.get("activation", "none") for each in linear[:-1]} or {"relu"}
        biases = {each.get("bias", True) for each in linear}
        if len(activations) > 1 or len(biases) > 1 or linear[-1].get("activation", "none") != "none" or not units[0]:
            return {"input": [units[0] or 1, 1, 1], "layers": [{"linear": each} for each in linear]}
        return {"units": units, "activation": activations.pop(), "bias": biases.pop()}

    def followed(self, value: str, end: Any) -> Iterator[dict[str, Any]]:
        """Layers from a value on, to before the node `end`."""
        waiting: dict[str, Any] | None = None  # a layer whose norm and activation may follow
        while True:
            users = [node for node in self.users.get(value, []) if node.op_type not in BESIDE]
            if not users or (end is not None and users == [end]):
                break
            if len(users) > 1 or (users[0].op_type in MEET and not self._is_bias(users[0])):
                if waiting is not None:
                    yield waiting
                    waiting = None
                value, entry = self._joined(value)
                yield entry
                continue
            [node] = users
            if node.op_type in PASSED:
                pass
            elif node.op_type in ("BatchNormalization", *ACTIVATIONS) or self._is_bias(node):
                waiting = self._after(node, waiting)
            else:
                if waiting is not None:
                    yield waiting
                waiting = entry_of(node, self.weights, self.notes)
                self._count(node)
            value = node.output[0]
        if waiting is not None:
            yield waiting

    def _is_bias(self, node: Any) -> bool:
        return node.op_type == "Add" and any(name in self.weights for name in node.input)

    def _after(self, node: Any, layer: dict[str, Any] | None) -> dict[str, Any]:
        """The layer with its norm, its bias or its activation."""
        if layer is None or not {"conv", "linear"} & set(layer):
            where = "a norm" if node.op_type == "BatchNormalization" else "an activation"
            raise NoLayer(
                f"{_called(node)}: {where} follows no convolution and no linear map", "of a block that is no residual one"
            )
        [(kind, keys)] = layer.items()
        if node.op_type == "BatchNormalization":
            if kind != "conv" or keys.get("activation", "none") != "none":
                raise NoLayer(f"{_called(node)}: a norm follows a convolution at once")
            keys["norm"] = True
            self.parameters += 2 * keys["channels"]
        elif node.op_type == "Add":
            keys["bias"] = True
            self.parameters += keys["units"] if kind == "linear" else keys["channels"]
        else:
            keys["activation"] = ACTIVATIONS[node.op_type]
        return layer

    def _joined(self, value: str) -> tuple[str, dict[str, Any]]:
        """(the value after all ways from here have met, the block between)."""
        meeting = self._meeting(value)
        ways = [[] if node is meeting else list(self._way(value, node, meeting)) for node in self.users[value]]
        if meeting.op_type == "Concat":
            if attributes(meeting).get("axis", 1) not in (1, -3):
                raise NoLayer(f"{_called(meeting)}: branches are put together by channels, axis 1")
            return meeting.output[0], {"branches": {"of": ways}}
        after = self.users.get(meeting.output[0], [])
        if len(after) == 1 and after[0].op_type == "Relu":
            return after[0].output[0], residual(_called(meeting), ways, normed=self.normed)
        raise NoLayer(f"{_called(meeting)}: no activation follows the sum", "residual blocks have one")

    def _way(self, value: str, first: Any, meeting: Any) -> Iterator[dict[str, Any]]:
        """Layers of one of several ways."""
        users = self.users[value]
        self.users[value] = [first]
        try:
            yield from self.followed(value, meeting)
        finally:
            self.users[value] = users

    def _meeting(self, value: str) -> Any:
        """The first node through which all ways from a value go."""
        edges = {(value, id(node)): node for node in self.users[value]}
        while edges:
            node = min(edges.values(), key=lambda each: self.place[id(each)])
            mine = [edge for edge in edges if edge[1] == id(node)]
            if len(mine) == len(edges) and node.op_type in MEET:
                return node
            if len(edges) > 1 and node.op_type == "Mul":
                raise NoLayer(f"{_called(node)}: values that scale others are not read")
            for edge in mine:
                del edges[edge]
            for name in node.output:
                edges |= {(name, id(user)): user for user in self.users.get(name, [])}
        raise NoLayer(f"the ways from '{value}' never meet again", "a network has one result")

    def _count(self, node: Any) -> None:
        """Parameters and operations of a node, by the shapes of the file."""
        if node.op_type not in ("Conv", "Gemm", "MatMul"):
            return
        weight = self.weights[node.input[1]]
        self.parameters += math.prod(weight) + (
            math.prod(self.weights[node.input[2]]) if len(node.input) > 2 and node.input[2] else 0
        )
        out = self.shapes.get(node.output[0], ())
        if node.op_type == "Conv" and (len(out) != 4 or not all(out[1:])):
            raise NoLayer(f"{_called(node)}: the shape of its result cannot be inferred", "export it with a fixed image size")
        places = math.prod(out[2:]) if node.op_type == "Conv" else 1
        self.flop += 2.0 * math.prod(weight) * places

    def check(self, keys: Mapping[str, Any]) -> None:
        """Compare with what the keys make.

        Raises:
            NoLayer: another number of parameters or of operations.
        """

        kind = "mlp" if "units" in keys else "cnn"
        network = read_network(tree_of({"hwsim": "model/1", "kind": kind, **keys}))
        if network.parameters != self.parameters or abs(network.forward_flop - self.flop) > 1e-9 * self.flop:
            raise NoLayer(
                f"the file has {self.parameters:,} parameters and {self.flop:,.0f} operations, the layers that were found "
                f"{network.parameters:,} and {network.forward_flop:,.0f}", "padding on one side, or dilation, is not read"
            )  # fmt: skip


def _dims(value: Any) -> tuple[int, ...]:
    """The shape of a value; 0 where it is not stated."""
    return tuple(each.dim_value for each in value.type.tensor_type.shape.dim)


def _called(node: Any) -> str:
    return f"node '{node.name or node.output[0]}' ({node.op_type})"


def _said(shape: tuple[int, ...]) -> str:
    return " x ".join(str(each) if each else "?" for each in shape) or "of no stated shape"
