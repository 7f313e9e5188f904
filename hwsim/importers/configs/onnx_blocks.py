"""Nodes of an ONNX graph as entries of a network of convolutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hwsim.spec.mistakes import Hinted

Entry = dict[str, Any]


class NoLayer(Hinted):
    """A node that no layer stands for, and what may help."""


def attributes(node: Any) -> dict[str, Any]:
    """Attributes of a node, whole numbers and lists of them."""
    return {each.name: list(each.ints) if each.ints else each.s.decode() if each.s else each.i for each in node.attribute}


def entry_of(node: Any, weights: Mapping[str, tuple[int, ...]], notes: list[str]) -> Entry:
    """The layer of a node.

    Raises:
        NoLayer: there is none.
    """
    name = f"node '{node.name or node.output[0]}' ({node.op_type})"
    given = attributes(node)
    match node.op_type:
        case "Conv":
            return {"conv": _conv(node, name, weights, given)}
        case "MaxPool" | "AveragePool":
            kernel, stride = _side(name, given.get("kernel_shape", [1])), _side(name, given.get("strides", [1]))
            if given.get("ceil_mode"):
                notes.append(f"{name}: rounded down, not up (ceil_mode)")
            padding = _padding(name, given)
            by = "max" if node.op_type == "MaxPool" else "average"
            return {"pool": {"by": by, "kernel": kernel, "stride": stride, "padding": padding[0]}}
        case "GlobalAveragePool" | "GlobalMaxPool" | "ReduceMean":
            return {"pool": {"by": "max" if node.op_type == "GlobalMaxPool" else "average"}}
        case "Gemm" | "MatMul":
            return {"linear": _linear(node, name, weights, given)}
        case "LRN":
            raise NoLayer(f"{name}: norms over neighbouring channels cannot be said")
    raise NoLayer(f"{name}: no layer of a network of convolutions", "a transformer: hwsim import huggingface config.json")


def _conv(node: Any, name: str, weights: Mapping[str, tuple[int, ...]], given: Mapping[str, Any]) -> Entry:
    shape = weights.get(node.input[1], ())
    if len(shape) != 4:
        raise NoLayer(f"{name}: a convolution of two dimensions has stored weights of four")
    if set(given.get("dilations", [1])) != {1}:
        raise NoLayer(f"{name}: dilated convolutions cannot be said")
    padding, kernel = _padding(name, given), list(shape[2:])
    bias = len(node.input) > 2 and bool(node.input[2])
    return {
        "channels": shape[0], "kernel": kernel, "stride": _side(name, given.get("strides", [1])), "padding": padding,
        **({"groups": given["group"]} if given.get("group", 1) > 1 else {}), "norm": False, "bias": bias, "activation": "none",
    }  # fmt: skip


def _linear(node: Any, name: str, weights: Mapping[str, tuple[int, ...]], given: Mapping[str, Any]) -> Entry:
    shape = weights.get(node.input[1], ())
    if len(shape) != 2 or node.input[0] in weights:
        raise NoLayer(f"{name}: a product of two values that are computed", "a transformer: hwsim import huggingface config.json")
    units = shape[0] if given.get("transB") else shape[1]
    return {"units": units, "bias": len(node.input) > 2 and bool(node.input[2]), "activation": "none"}


def _padding(name: str, given: Mapping[str, Any]) -> list[int]:
    """Height and width; both sides are padded alike."""
    if given.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID", ""):
        raise NoLayer(f"{name}: padding is not stated (auto_pad)", "export it with `pads`")
    pads = given.get("pads") or [0, 0, 0, 0]
    if len(pads) != 4 or pads[:2] != pads[2:]:
        raise NoLayer(f"{name}: padding of {pads} differs from side to side")
    return list(pads[:2])


def _side(name: str, given: Sequence[int]) -> int:
    if len(set(given)) != 1:
        raise NoLayer(f"{name}: {' x '.join(map(str, given))} is not square")
    return given[0]


def residual(name: str, ways: Sequence[Sequence[Entry]], *, normed: bool) -> Entry:
    """The block of two ways that are added up: two or three convolutions, and nothing or one.

    Raises:
        NoLayer: it is another block.
    """
    if len(ways) != 2 or any(list(entry) != ["conv"] for way in ways for entry in way):
        raise NoLayer(f"{name}: a sum is of convolutions and what comes in")
    body, around = sorted(([entry["conv"] for entry in way] for way in ways), key=len, reverse=True)
    if len(around) > 1 or any(conv["norm"] != normed or conv["bias"] == normed for conv in (*body, *around)):
        raise NoLayer(f"{name}: the convolutions of a block all have a norm, or all a bias")
    acts = [conv["activation"] for conv in body]
    if acts != ["relu"] * (len(body) - 1) + ["none"] or any(conv["activation"] != "none" for conv in around):
        raise NoLayer(f"{name}: activations follow all convolutions of a block but the last")
    sides = [tuple(conv["kernel"]) for conv in body]
    stride = max(conv["stride"] for conv in body)
    if sides == [(3, 3), (3, 3)] and body[0]["channels"] == body[1]["channels"]:
        return {"basic": {"channels": body[0]["channels"], "stride": stride, "projected": bool(around)}}
    if sides == [(1, 1), (3, 3), (1, 1)]:
        inner, out, groups = body[0]["channels"], body[2]["channels"], body[1].get("groups", 1)
        where: Entry = {"stride_in": "first"} if body[0]["stride"] > 1 else {}
        if groups == 1:
            return {"bottleneck": {"channels": inner, "stride": stride, "expansion": out // inner, **where}}
        wide = {"width": inner * 64 // (out // 4 * groups)}
        return {"bottleneck": {"channels": out // 4, "stride": stride, "groups": groups, **wide, **where}}
    raise NoLayer(
        f"{name}: {len(body)} convolutions of {', '.join('x'.join(map(str, side)) for side in sides)} are no block here"
    )
