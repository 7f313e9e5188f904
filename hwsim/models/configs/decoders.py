"""Decoder families: the mapping from config keys to model keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hwsim.models.configs.config import Config, ConfigValue
from hwsim.models.configs.layers import RunKeys, alternating_layer_types, set_layer_keys, windows

Keys = dict[str, ConfigValue | None]
ATTENTION: Final = ("q", "k", "v", "projection")


def family_constant(value: Any, config: Config) -> ConfigValue:
    """Return a value that all models of the family have."""
    return ConfigValue(value, f"all of {config.family}", config.tree.place)


def decoder_keys(config: Config, *, gated: bool = True, norm: str = "rmsnorm", positions: str = "rotary") -> Keys:
    """Return the keys that all decoders have."""
    head = config.count("head_dim", default=None)
    return {
        "layers": config.count("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
        "hidden": config.count("hidden_size", "n_embd", "d_model"),
        "heads": config.count("num_attention_heads", "n_head", "n_heads"),
        "kv_heads": _if_set(config.count("num_key_value_heads", default=None)),
        "head": _if_set(head),
        "ffn": _if_set(config.count("intermediate_size", "n_inner", "ffn_dim", default=None)),
        "gated": family_constant(gated, config) if gated else None,
        "vocab": config.count("vocab_size"),
        "tied": config.flag("tie_word_embeddings", default=False),
        "sequence": config.count("max_position_embeddings", "n_positions", "n_ctx", default=2048),
        "positions": family_constant(positions, config) if positions != "learned" else None,
        "norm": family_constant(norm, config) if norm != "layernorm" else None,
        "bias": ConfigValue(False, f"all of {config.family}", config.tree.place),
    }


def _if_set(told: ConfigValue) -> ConfigValue | None:
    return None if told.value is None else told


def set_biases(
    config: Config, keys: Keys, flags: dict[str, Sequence[str]], always: Sequence[str] = (), *, default: bool = False
) -> None:
    """Set which parts have biases.

    Args:
        flags: config key -> parts that it controls.
        always: parts that always have biases.
        default: value of an omitted flag.
    """
    parts, origins = list(always), [f"all of {config.family}"] if always else []
    for key, flag_parts in flags.items():
        flag = config.flag(key, default=default)
        origins.append(flag.origin)
        parts += flag_parts if flag.value else ()
    ordered = list(dict.fromkeys(parts))
    keys["bias"] = ConfigValue(ordered or False, ", ".join(origins), config.tree.place)


def required_key(keys: Keys, key: str) -> ConfigValue:
    """Return a key that all decoders have."""
    value = keys[key]
    assert value is not None
    return value


def plain(config: Config) -> Keys:
    """Return the keys of Gemma (first version): only attention may have biases."""
    keys = decoder_keys(config)
    set_biases(config, keys, {"attention_bias": ATTENTION})
    return keys


def llama(config: Config) -> Keys:
    """Return the keys of Llama, Granite and SmolLM3."""
    keys = decoder_keys(config)
    set_biases(config, keys, {"attention_bias": ATTENTION, "mlp_bias": ("ffn",)})
    config.find("no_rope_layers", "no_rope_layer_interval", "use_sliding_window", "layer_types")
    _refuse_windows(config)
    return keys


def _refuse_windows(config: Config) -> None:
    config.refuse_types("layer_types", ("full_attention",))


def mistral(config: Config) -> Keys:
    """Return the keys of Mistral and Phi-3: all layers have the window, if there is one."""
    keys = decoder_keys(config)
    return set_layer_windows(keys, *layer_windows_of(config, keys, ["sliding_attention"] * required_key(keys, "layers").value))


def layer_windows_of(
    config: Config, keys: Keys, types: Sequence[str], window: str = "sliding_window"
) -> tuple[list[RunKeys], str]:
    """Return the window of each layer and the keys that determine it; as `windows`."""
    return windows(config, required_key(keys, "layers").value, window, types)


def set_layer_windows(keys: Keys, layers: Sequence[RunKeys], origin: str) -> Keys:
    """Set the window of each layer."""
    set_layer_keys(keys, layers, origin)
    if any(layer.get("window") for layer in layers):
        keys["cache"] = ConfigValue("window", "as servers keep it")
    return keys


def starcoder2(config: Config) -> Keys:
    """Return the keys of StarCoder 2: layer norms, not gated."""
    keys = mistral(config) | {"gated": None, "norm": None}
    keys["bias"] = ConfigValue(config.flag("use_bias", default=True).value or ["norm"], "use_bias")
    return keys


def qwen2(config: Config) -> Keys:
    """Return the keys of Qwen 2 and 2.5: q, k and v have biases, which the config does not state."""
    keys = _qwen_windows(config, decoder_keys(config))
    keys["bias"] = family_constant(["q", "k", "v"], config)
    return keys


def qwen3(config: Config) -> Keys:
    """Return the keys of Qwen 3."""
    keys = _qwen_windows(config, plain(config))
    keys["qk_norm"] = family_constant("head", config)
    return keys


def _qwen_windows(config: Config, keys: Keys) -> Keys:
    first = config.count("max_window_layers", default=28, minimum=0).value
    types = ["full_attention" if index < first else "sliding_attention" for index in range(required_key(keys, "layers").value)]
    if not config.flag("use_sliding_window", default=False).value:
        config.find("sliding_window")
        _refuse_windows(config)
        return keys
    return set_layer_windows(keys, *layer_windows_of(config, keys, types))


def gemma2(config: Config, step: int = 2, *, qk_norm: bool = False) -> Keys:
    """Return the keys of Gemma 2: full attention in every second layer, four norms per layer."""
    keys = plain(config)
    period = config.count("sliding_window_pattern", "_sliding_window_pattern", default=step).value
    keys["norms"] = family_constant(4, config)
    if qk_norm:
        keys["qk_norm"] = family_constant("head", config)
    return set_layer_windows(
        keys, *layer_windows_of(config, keys, alternating_layer_types(required_key(keys, "layers").value, period))
    )


def gemma3(config: Config) -> Keys:
    """Return the keys of Gemma 3: full attention in every sixth layer."""
    return gemma2(config, 6, qk_norm=True)


def gemma4(config: Config) -> Keys:
    """Return the keys of Gemma 4.

    Layers with full attention have separate heads and shared keys and values; experts are added to a dense network.
    """
    if config.count("hidden_size_per_layer_input", default=0, minimum=0).value:
        config.refuse(
            "hidden_size_per_layer_input", "per-layer input embeddings are not supported", "hidden_size_per_layer_input: 0"
        )
    if config.count("num_kv_shared_layers", default=0, minimum=0).value:
        config.refuse("num_kv_shared_layers", "layers that share keys and values are not supported")
    config.refuse_unless("use_double_wide_mlp", (False, None), "layers that share keys and values are not supported")
    config.find("vocab_size_per_layer_input")
    keys = plain(config)
    layers, kv, head = required_key(keys, "layers").value, keys["kv_heads"], keys["head"]
    layer_windows, origin = layer_windows_of(config, keys, [*alternating_layer_types(layers, 6)[:-1], "full_attention"])
    wide = config.count("global_head_dim", default=None).value
    full_kv_heads = config.count("num_global_key_value_heads", default=None).value
    is_shared = config.flag("attention_k_eq_v", default=False).value
    full: RunKeys = {"head": wide or (head.value if head else None), "kv_heads": full_kv_heads or (kv.value if kv else None)}
    if is_shared:
        full["shared_values"] = True
    else:
        full.pop("kv_heads")
    stated = {key: value for key, value in full.items() if value}
    kinds = [{**seen_by, **({} if seen_by.get("window") else stated)} for seen_by in layer_windows]
    if config.has("per_layer_config"):
        kinds = _per_layer_kinds(config, kinds, layers)
    keys |= {"norms": family_constant(4, config), "qk_norm": family_constant("head", config)}
    if config.flag("enable_moe_block", default=False).value:
        width = config.count("moe_intermediate_size")
        bias = ATTENTION if config.flag("attention_bias", default=False).value else ()
        keys |= {"experts": config.count("num_experts"), "top_k": config.count("top_k_experts"),
                 "shared": keys["ffn"], "ffn": width, "norms": ConfigValue(8, "three more norms, and a scale of the router"),
                 "bias": ConfigValue([*bias, "router"], "attention_bias; scales of the experts")}  # fmt: skip
    else:
        config.find("num_experts", "top_k_experts", "moe_intermediate_size")
    return set_layer_windows(keys, kinds, f"{origin}, global_head_dim, num_global_key_value_heads, attention_k_eq_v")


def _per_layer_kinds(config: Config, kinds: list[RunKeys], layers: int) -> list[RunKeys]:
    """Return the layers with `per_layer_config` instead of the keys for all layers with full attention."""
    _, stated = config.find("per_layer_config")
    names = {"head_dim": "head", "num_key_value_heads": "kv_heads"}
    changed = [{key: value for key, value in kind.items() if key not in names.values()} for kind in kinds]
    for number, entry in stated.items() if stated is not None else ():
        values = entry.plain()
        if not number.isdigit() or int(number) >= layers or not isinstance(values, dict):
            config.mistakes.add(entry.place, f"expected a layer from 0 to {layers - 1}, got '{number}'")
            continue
        for key, value in values.items():
            if key not in names or not isinstance(value, int):
                config.mistakes.add(entry.key_place(key), f"unsupported layer key '{key}'", "head_dim, num_key_value_heads")
            else:
                changed[int(number)][names[key]] = value
    return changed


def gpt2(config: Config) -> Keys:
    """Return the keys of GPT-2."""
    keys = decoder_keys(config, gated=False, norm="layernorm", positions="learned")
    keys["bias"] = family_constant(True, config)
    config.refuse_unless("add_cross_attention", (False, None), "cross-attention to an encoder is not supported")
    return keys


def gpt_neox(config: Config) -> Keys:
    """Return the keys of GPT-NeoX and Pythia."""
    keys = decoder_keys(config, gated=False, norm="layernorm")
    set_biases(config, keys, {"attention_bias": ATTENTION}, ("ffn", "norm"), default=True)
    return keys


def gptj(config: Config) -> Keys:
    """Return the keys of GPT-J: attention and feed-forward network share a norm."""
    keys = decoder_keys(config, gated=False, norm="layernorm")
    keys |= {"norms": family_constant(1, config), "bias": family_constant(["ffn", "norm", "output"], config)}
    return keys


def phi(config: Config) -> Keys:
    """Return the keys of Phi-1, 1.5 and 2."""
    keys = decoder_keys(config, gated=False, norm="layernorm")
    config.refuse_unless("qk_layernorm", (False, None), "query and key norms with biases are not supported")
    keys |= {"norms": family_constant(1, config), "bias": family_constant([*ATTENTION, "ffn", "norm", "output"], config)}
    return keys


def opt(config: Config) -> Keys:
    """Return the keys of OPT."""
    keys = decoder_keys(config, gated=False, norm="layernorm", positions="learned")
    config.refuse_unless(
        "word_embed_proj_dim",
        (required_key(keys, "hidden").value, None),
        "an embedding width other than hidden_size is not supported",
    )
    config.refuse_unless("do_layer_norm_before", (True, None), "post-norm layers are not supported")
    config.refuse_unless("_remove_final_layer_norm", (False, None), "a model without the final norm is not supported")
    config.refuse_unless("layer_norm_elementwise_affine", (True, None), "norms without parameters are not supported")
    bias = config.flag("enable_bias", default=True)
    keys["bias"] = ConfigValue(bias.value or ["norm"], bias.origin)
    keys["places"] = ConfigValue(
        required_key(keys, "sequence").value + 2, "max_position_embeddings and 2", required_key(keys, "sequence").place
    )
    return keys


def bloom(config: Config) -> Keys:
    """Return the keys of BLOOM."""
    keys = decoder_keys(config, gated=False, norm="layernorm", positions="alibi")
    wide = ConfigValue(4 * required_key(keys, "hidden").value, "4 x hidden_size")
    return keys | {"bias": family_constant(True, config), "embedding_norm": family_constant(True, config), "ffn": wide}


def olmo2(config: Config) -> Keys:
    """Return the keys of OLMo 2 and 3: norms over all queries and over all keys."""
    keys = plain(config)
    keys["qk_norm"] = family_constant("whole", config)
    if config.family != "olmo3":
        return keys
    return set_layer_windows(
        keys, *layer_windows_of(config, keys, alternating_layer_types(required_key(keys, "layers").value, 4))
    )
