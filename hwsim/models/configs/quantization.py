"""Published weight formats: `quantization_config` of a config, or `hf_quant_config.json` in its folder.

The modules that a checkpoint keeps in 16 bits determine which linear layers are quantized. Their names are those of the
checkpoint (`model.layers.3.self_attn*`). Heads, embeddings, norms, routers, indexers, vision towers and layers after the last one
are always in 16 bits in a model.

**Source**: the configurations of transformers 5.23 and compressed-tensors; NVIDIA ModelOpt (hf_quant_config.json).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from hwsim.models.configs.config import Config, ConfigValue
from hwsim.spec.mistakes import Mistakes, SpecError
from hwsim.spec.tree import Tree, tree_of

METHODS: Final = ("fp8", "fbgemm_fp8", "mxfp4", "gptq", "awq", "compressed-tensors", "modelopt", "bitsandbytes")
BESIDE: Final = "hf_quant_config.json"
NAMED: Final = 4  # largest number of names in a note
_KEPT: Final = ("exclude_modules", "ignore", "modules_to_not_convert")  # names of modules in 16 bits
_CACHE: Final = ("kv_cache_quant_algo", "kv_cache_scheme")


def merge_quant_config(config: Tree, beside: Tree) -> Tree:
    """Return a config merged with ModelOpt's file. A complete `quantization_config` takes precedence.

    Raises:
        SpecError: the file is not from ModelOpt.
    """
    written = beside.get("quantization")
    if written is None or not written.is_mapping:
        mistakes = Mistakes()
        mistakes.add(beside.place, f"'quantization' is missing in {BESIDE} (NVIDIA ModelOpt)", None)
        raise SpecError(mistakes)
    stated = config.get("quantization_config")
    if stated is not None and stated.text("quant_method") is not None:
        return config
    return config.put("quantization_config", written.put("quant_method", tree_of("modelopt", written.place)))


def refuse_alone(tree: Tree) -> None:
    """Raise SpecError if a ModelOpt file is given instead of the config.

    Raises:
        SpecError: the tree is a ModelOpt file.
    """
    if tree.is_mapping and tree.get("quantization") is not None and tree.get("model_type") is None and tree.get("hwsim") is None:
        mistakes = Mistakes()
        mistakes.add(tree.place, f"expected a config.json, got {BESIDE}, which states weight formats but no model shape",
                     "give the config.json of the same folder")  # fmt: skip
        raise SpecError(mistakes)


def quantised(config: Config) -> tuple[ConfigValue | None, tuple[str, ...]]:
    """Return (the model key `quantised`, or None if weights have the compute data type; assumptions)."""
    _, tree = config.find("quantization_config")
    if tree is None:
        return None, ()
    if not tree.is_mapping:
        config.mistakes.add(tree.place, f"'quantization_config': expected a mapping, got {tree.what()}")
        return None, ()
    name = _method(tree)
    if name is None:
        config.mistakes.add(tree.place, "'quant_method' is missing in quantization_config", f"one of {', '.join(METHODS)}")
        return None, ()
    method = tree.get("quant_method") or tree
    if name == "modelopt" and _is_none(tree):
        return None, ()
    before = len(config.mistakes)
    made = _weight_format(config, tree, name)
    if made is None:
        if len(config.mistakes) == before:
            config.mistakes.add(method.place, f"unknown quantization method '{name}'", f"one of {', '.join(METHODS)}")
        return None, ()
    notes = _set_scope(config, tree, made)
    notes += _set_cache(tree, made)
    where = BESIDE if Path(tree.place.file).name == BESIDE else "quantization_config"
    return ConfigValue(made, f"{where}, {tree.text('quant_algo') or name}", method.place), notes


def _method(tree: Tree) -> str | None:
    """Return the quantization method; inferred from other keys if omitted, as in early ModelOpt versions."""
    producer = tree.get("producer")
    if tree.get("quant_algo") is not None or (producer is not None and producer.text("name") == "modelopt"):
        return "modelopt"
    return tree.text("quant_method") or ("compressed-tensors" if tree.get("config_groups") is not None else None)


def _is_none(tree: Tree) -> bool:
    algorithm = tree.get("quant_algo")
    return algorithm is None or algorithm.value in (None, "NO_QUANT")


def _set_scope(config: Config, tree: Tree, made: dict[str, Any]) -> tuple[str, ...]:
    """Set which weights are quantized; return the assumptions."""
    key, listed = next(((key, value) for key in _KEPT if (value := tree.get(key)) is not None), ("", None))
    names = [element.value for element in listed.elements() if isinstance(element.value, str)] if listed is not None else []
    if not names or made.get("of") == "experts":
        return ()
    experts = config.has("num_experts", "num_local_experts", "n_routed_experts")
    layers = config.count("num_hidden_layers", "n_layer", "n_layers", "num_layers", default=1).value
    part = quantized_part(names, layers, experts=experts, mlp_is_shared=config.family.startswith("gemma4"))
    if part.of is None:
        config.mistakes.add(tree.key_place(key), f"'{key}' keeps parts of the layers in 16 bits: "
                            "supported are quantized experts, or all linear layers quantized", None)  # fmt: skip
    elif part.of == "experts":
        made["of"] = "experts"
    return part.notes


def _set_cache(tree: Tree, made: dict[str, Any]) -> tuple[str, ...]:
    """Set the data type of keys and values; return the assumptions."""
    cache = next((value for key in _CACHE if (value := tree.get(key)) is not None and value.value is not None), None)
    if cache is None:
        return ()
    bits, kind = _number(cache, "num_bits"), cache.text("type")
    word = str(cache.value) if not cache.is_mapping else f"{kind} of {bits} bits"
    if word.upper().startswith("FP8") or (kind == "float" and bits == 8):
        made["cache"] = "fp8"
        return ()
    return (f"KV cache in {word}: ignored, the compute data type is used instead",)


def _weight_format(config: Config, tree: Tree, method: str) -> dict[str, Any] | None:
    group = _number(tree, "group_size")
    match method:
        case "fp8" | "fbgemm_fp8":
            block = tree.get("weight_block_size")
            values = [element.value for element in block.elements()] if block is not None else []
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
            return _modelopt(config, tree, group)
    return None


def _modelopt(config: Config, tree: Tree, group: int | None) -> dict[str, Any] | None:
    algorithm = tree.text("quant_algo") or ""
    match algorithm:
        case "FP8" | "FP8_PER_CHANNEL_PER_TOKEN" | "FP8_PER_CHANNEL_PER_TOKEN_DYNAMIC":
            return {"format": "fp8"}
        case "FP8_PB_WO" | "FP8_BLOCK_SCALES" | "FP8_PB_REAL_QUANT":
            return {"format": "fp8", "group": 128 * 128}
        case "NVFP4" | "NVFP4_AWQ" | "W4A16_NVFP4":
            return {"format": "nvfp4", "group": group or 16}
        case "W4A16_AWQ" | "INT4_AWQ":
            return {"format": "int4", "group": group or 128}
        case "W4A16_MXFP4" | "W4A8_MXFP4_FP8" | "MXFP4":
            return {"format": "mxfp4", "group": 32}
        case "MIXED_PRECISION":
            config.mistakes.add(
                tree.key_place("quant_algo"), "'MIXED_PRECISION' is not supported: expected one format for all quantized weights"
            )
        case _:
            config.mistakes.add(tree.key_place("quant_algo"), f"unknown quantization format '{algorithm}'",
                                "FP8, FP8_PB_WO, NVFP4, W4A16_AWQ or MXFP4")  # fmt: skip
    return None


def _compressed(config: Config, tree: Tree) -> dict[str, Any] | None:
    groups = tree.get("config_groups")
    weights = [entry.get("weights") for _, entry in groups.items()] if groups is not None else []
    if len(weights) != 1 or weights[0] is None:
        config.mistakes.add(tree.key_place("config_groups"), f"expected one weight format, got {len(weights)}")
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
        config.mistakes.add(tree.place, f"integer weights: expected 4 or 8 bits, got {bits}")
        return None
    return {"format": f"int{bits}", **({"group": group} if group and group > 0 else {})}


def _number(tree: Tree, key: str) -> int | None:
    found = tree.get(key)
    return found.value if found is not None and isinstance(found.value, int) and not isinstance(found.value, bool) else None


Part = Literal["attention", "shared", "experts", "ffn", "layer", "none", "unknown"]
_LAYER: Final = re.compile(r"layers\.(\d+)")
_NONE: Final = re.compile(
    r"head$|lm_head|embed|norm|router|gate$|gate\b(?!_proj)|indexer|mtp|visi|visual|projector|patch_merge|eh_proj"
)


class QuantizedPart(NamedTuple):
    """The linear layers that are quantized.

    Args:
        of: linear layers or experts; None: not supported.
        notes: differences from the checkpoint.
    """

    of: Literal["linear", "experts"] | None
    notes: tuple[str, ...]


def quantized_part(excluded: Sequence[str], layers: int, *, experts: bool, mlp_is_shared: bool = False) -> QuantizedPart:
    """Return which linear layers are quantized, if the modules with these names are not.

    Args:
        excluded: module names, with wildcards.
        layers: number of layers of the model.
        experts: whether the model has experts.
        mlp_is_shared: whether `mlp` is the shared expert (Gemma 4).

    >>> quantized_part(["lm_head", "model.layers.0.mlp.gate"], 1, experts=True)
    QuantizedPart(of='linear', notes=())
    >>> quantized_part(["model.layers.0.self_attn*", "model.layers.0.mlp.shared_experts*"], 1, experts=True)
    QuantizedPart(of='experts', notes=())
    >>> quantized_part(["*.self_attn*"], 4, experts=False).of is None
    True
    """
    layers_of: dict[Part, set[int]] = {}
    for name in excluded:
        part = _part(name, mlp_is_shared=mlp_is_shared)
        place = _LAYER.search(name)
        if place is None:
            layers_of.setdefault(part, set()).update(range(layers))
        elif int(place[1]) < layers:
            layers_of.setdefault(part, set()).add(int(place[1]))
    notes = []
    if "unknown" in layers_of:
        strange = [name for name in excluded if _part(name, mlp_is_shared=mlp_is_shared) == "unknown"]
        notes.append(f"unknown 16-bit modules, ignored: {_name_list(strange)}")
    in_full = layers_of.pop("layer", set())
    if len(in_full) > max(3, layers // 8) or layers_of.keys() & {"experts", "ffn"}:
        return QuantizedPart(None, ())
    attention, shared = (2 * len(layers_of.get(part, ())) > layers for part in ("attention", "shared"))
    if attention and not experts:
        return QuantizedPart(None, ())
    if attention or shared:
        partly = any(name.rstrip("*").endswith(("_proj", "_mqa")) for name in excluded if "attn" in name)
        if not (attention and shared) or partly:
            notes.append(
                "assumed: all linear layers except the experts in 16 bits; the checkpoint keeps only some of them in 16 bits"
            )
        return QuantizedPart("experts", tuple(notes))
    if in_full and not experts:
        notes.append(f"16-bit layers of the checkpoint, modelled as quantized: {', '.join(map(str, sorted(in_full)))}")
    elif any(layers_of.get(part) for part in ("attention", "shared")):
        notes.append("assumed: attention quantized in all layers; the checkpoint keeps it in 16 bits in fewer than half of them")
    return QuantizedPart("linear", tuple(notes))


def _part(name: str, *, mlp_is_shared: bool) -> Part:
    """
    >>> [_part(name, mlp_is_shared=False) for name in ("layers.0.self_attn*", "model.layers.3*", "re:.*lm_head", "conv1d")]
    ['attention', 'layer', 'none', 'unknown']
    """
    plain = name.removeprefix("re:").rstrip("*.$").lower()
    if re.search(r"layers\.\d+$", plain):
        return "layer"
    if _NONE.search(plain):
        return "none"
    if "attn" in plain or "attention" in plain:
        return "attention"
    if "shared" in plain:
        return "shared"
    if "experts" in plain:
        return "experts"
    if re.search(r"\b(mlp|ffn|feed_forward)\b", plain):
        return "shared" if mlp_is_shared else "ffn"
    return "unknown"


def _name_list(names: Sequence[str]) -> str:
    rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + rest
