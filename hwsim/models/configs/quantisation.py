"""`quantization_config` of a config: the format that weights are published in."""

from __future__ import annotations

from typing import Any, Final

from hwsim.models.configs.config import Config, Told
from hwsim.spec.tree import Tree

METHODS: Final = ("fp8", "fbgemm_fp8", "mxfp4", "gptq", "awq", "compressed-tensors", "modelopt", "bitsandbytes")


def quantised(config: Config) -> Told | None:
    """The key `quantised` of a model; None where weights have the format that is computed in."""
    _, tree = config.find("quantization_config")
    if tree is None:
        return None
    if not tree.is_mapping:
        config.mistakes.add(tree.place, f"'quantization_config' is a mapping, not {tree.what()}")
        return None
    method = tree.get("quant_method")
    name = tree.text("quant_method")
    if method is None or name is None:
        config.mistakes.add(tree.place, "'quant_method' is missing in quantization_config", f"one of {', '.join(METHODS)}")
        return None
    made = _of(config, tree, name)
    if made is None and not config.mistakes:
        config.mistakes.add(method.place, f"'{name}' is no way to quantise that is known here", f"one of {', '.join(METHODS)}")
    return None if made is None else Told(made, f"quantization_config, {name}", method.place)


def _of(config: Config, tree: Tree, method: str) -> dict[str, Any] | None:
    group = _number(tree, "group_size")
    match method:
        case "fp8" | "fbgemm_fp8":
            block = tree.get("weight_block_size")
            values = [each.value for each in block.elements()] if block is not None else []
            sides = [side for side in values if isinstance(side, int) and side > 0]
            if len(sides) == len(values) == 2:
                return {"format": "fp8", "group": sides[0] * sides[1]}
            return {"format": "fp8"}
        case "mxfp4":
            return {"format": "mxfp4", "of": "experts", "group": 32}
        case "gptq" | "awq":
            bits = _number(tree, "bits") or 4
            return _integers(config, tree, bits, group)
        case "bitsandbytes":
            eight = tree.get("load_in_8bit")
            return {"format": "int8"} if eight is not None and eight.value is True else {"format": "int4", "group": 64}
        case "compressed-tensors":
            return _compressed(config, tree)
        case "modelopt":
            algorithm = tree.text("quant_algo") or ""
            if algorithm.startswith("FP8"):
                return {"format": "fp8"}
            if algorithm.startswith("NVFP4"):
                return {"format": "nvfp4", "group": 16}
            config.mistakes.add(tree.key_place("quant_algo"), f"'{algorithm}' is no format that is known here", "FP8 or NVFP4")
    return None


def _compressed(config: Config, tree: Tree) -> dict[str, Any] | None:
    groups = tree.get("config_groups")
    weights = [entry.get("weights") for _, entry in groups.items()] if groups is not None else []
    if len(weights) != 1 or weights[0] is None:
        config.mistakes.add(tree.key_place("config_groups"), f"one format of all weights can be said, not {len(weights)}")
        return None
    only = weights[0]
    bits, kind, group = _number(only, "num_bits"), only.text("type"), _number(only, "group_size")
    if kind == "float" and bits == 8:
        return {"format": "fp8", **({"group": group} if group else {})}
    if kind == "float" and bits == 4:
        return {"format": "nvfp4", "group": group or 16}
    return _integers(config, only, bits or 0, group)


def _integers(config: Config, tree: Tree, bits: int, group: int | None) -> dict[str, Any] | None:
    if bits not in (4, 8):
        config.mistakes.add(tree.place, f"weights of {bits} bits cannot be said: 4 or 8")
        return None
    return {"format": f"int{bits}", **({"group": group} if group and group > 0 else {})}


def _number(tree: Tree, key: str) -> int | None:
    found = tree.get(key)
    return found.value if found is not None and isinstance(found.value, int) and not isinstance(found.value, bool) else None
