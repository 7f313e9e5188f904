"""Families of mixture-of-experts decoders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hwsim.models.configs.config import Config, ConfigValue
from hwsim.models.configs.decoders import (
    ATTENTION,
    Keys,
    decoder_keys,
    family_constant,
    layer_windows_of,
    plain,
    required_key,
    set_biases,
    set_layer_windows,
)
from hwsim.models.configs.layers import RunKeys, alternating_layer_types, merge_layer_keys, set_layer_keys


def _set_experts(config: Config, keys: Keys, experts: Sequence[str], top_k: Sequence[str]) -> None:
    keys |= {"experts": config.count(*experts), "top_k": config.count(*top_k)}


def _mix_layers(
    keys: Keys, has: Callable[[int], bool], width: ConfigValue, origin: str, shared: ConfigValue | None = None
) -> Keys:
    """Set the layers with and without experts.

    Args:
        has: function from a layer index to whether the layer has experts.
        width: width of an expert; dense layers have the `ffn` of the keys.
        shared: width of the shared expert.
    """
    dense = keys["ffn"]
    keys["ffn"] = width
    if shared is not None and shared.value:
        keys["shared"] = shared
    without: RunKeys = {"experts": 1, "ffn": None if dense is None else dense.value}
    chosen = [has(index) for index in range(required_key(keys, "layers").value)]
    if not any(chosen):
        keys |= {"experts": None, "top_k": None, "shared": None, "shared_gate": None, "ffn": dense}
    elif not all(chosen):
        set_layer_keys(keys, [{} if has_experts else without for has_experts in chosen], origin)
    return keys


def mixtral(config: Config) -> Keys:
    """Return the keys of Mixtral, OLMoE and PhiMoE: all layers have experts."""
    keys = decoder_keys(config)
    _set_experts(config, keys, ("num_local_experts", "num_experts"), ("num_experts_per_tok",))
    return set_layer_windows(keys, *layer_windows_of(config, keys, ["sliding_attention"] * required_key(keys, "layers").value))


def olmoe(config: Config) -> Keys:
    """Return the keys of OLMoE."""
    keys = plain(config)
    _set_experts(config, keys, ("num_experts",), ("num_experts_per_tok",))
    keys["qk_norm"] = family_constant("whole", config)
    return keys


def minimax_m2(config: Config) -> Keys:
    """Return the keys of MiniMax M2: all layers have experts; norms over the queries and keys of all heads."""
    keys = decoder_keys(config)
    _set_experts(config, keys, ("num_local_experts",), ("num_experts_per_tok",))
    if config.flag("use_qk_norm", default=True).value:
        config.refuse_unless("qk_norm_type", ("per_layer", None), "norms per head are not supported for this family")
        keys["qk_norm"] = ConfigValue("whole", "use_qk_norm")
    return keys


def qwen2_moe(config: Config) -> Keys:
    """Return the keys of Qwen 2 with experts: a shared expert with a gate."""
    keys = decoder_keys(config)
    keys["bias"] = ConfigValue(["q", "k", "v"] if config.flag("qkv_bias", default=True).value else False, "qkv_bias")
    keys["shared_gate"] = family_constant(True, config)
    return _sparse_layers(config, keys, config.count("shared_expert_intermediate_size"))


def qwen3_moe(config: Config) -> Keys:
    """Return the keys of Qwen 3 with experts."""
    keys = plain(config)
    keys["qk_norm"] = family_constant("head", config)
    return _sparse_layers(config, keys, None)


def _sparse_layers(config: Config, keys: Keys, shared: ConfigValue | None) -> Keys:
    config.refuse_unless("use_sliding_window", (False, None), "sliding windows are not supported for this family")
    config.find("sliding_window", "max_window_layers", "layer_types")
    _set_experts(config, keys, ("num_experts", "num_local_experts"), ("num_experts_per_tok",))
    step = config.count("decoder_sparse_step", default=1).value
    without = config.listed("mlp_only_layers", int)
    only = () if without is None else without.value
    width = config.count("moe_intermediate_size")
    origin = "decoder_sparse_step, mlp_only_layers, intermediate_size"
    return _mix_layers(keys, lambda index: index not in only and (index + 1) % step == 0, width, origin, shared)


def deepseek(config: Config) -> Keys:
    """Return the keys of DeepSeek-V2, V3, V3.2 and Kimi K2: latent attention, first layers dense, shared experts."""
    keys = decoder_keys(config) | {"kv_heads": None, "head": None}
    config.find("head_dim")
    names = {"rank": "kv_lora_rank", "plain": "qk_nope_head_dim", "rotary": "qk_rope_head_dim", "values": "v_head_dim"}
    config.refuse_types("layer_types", ("indexed_attention",))
    latent: dict[str, Any] = {key: config.count(name).value for key, name in names.items()}
    wide = latent["plain"] + latent["rotary"]
    config.refuse_unless("qk_head_dim", (wide, None), f"qk_nope_head_dim and qk_rope_head_dim are {wide} together")
    queries = config.count("q_lora_rank", default=None)
    if queries.value is not None:
        latent = {"rank": latent.pop("rank"), "query_rank": queries.value, **latent}
    if config.family == "deepseek_v32" or config.has("index_topk"):
        indexer = {"heads": "index_n_heads", "width": "index_head_dim", "chosen": "index_topk"}
        latent["indexer"] = {key: config.count(name).value for key, name in indexer.items()}
        names |= indexer
    keys["latent"] = ConfigValue(latent, ", ".join((*names.values(), "q_lora_rank")), config.tree.key_place("kv_lora_rank"))
    set_biases(config, keys, {"attention_bias": ("q", "k", "projection"), "mlp_bias": ("ffn",)})
    if config.count("n_routed_experts", "num_local_experts", default=0, minimum=0).value:
        _set_experts(config, keys, ("n_routed_experts", "num_local_experts"), ("num_experts_per_tok",))
    else:
        return keys
    first = config.count("first_k_dense_replace", default=0, minimum=0).value
    step = config.count("moe_layer_freq", default=1).value
    types = config.listed("mlp_layer_types", str, required_key(keys, "layers").value)
    width, shared = config.count("moe_intermediate_size"), config.count("n_shared_experts", default=0, minimum=0)
    beside = ConfigValue(shared.value * width.value, "n_shared_experts x moe_intermediate_size", shared.place)
    origin = "first_k_dense_replace, moe_layer_freq, intermediate_size"
    if types is not None:
        return _mix_layers(keys, lambda i: bool(types.value[i] == "sparse"), width, "mlp_layer_types, intermediate_size", beside)
    return _mix_layers(keys, lambda index: index >= first and index % step == 0, width, origin, beside)


def glm4_moe(config: Config) -> Keys:
    """Return the keys of GLM-4.5."""
    keys = decoder_keys(config)
    set_biases(config, keys, {"attention_bias": ("q", "k", "v")})
    if config.flag("use_qk_norm", default=False).value:
        keys["qk_norm"] = ConfigValue("head", "use_qk_norm")
    _set_experts(config, keys, ("n_routed_experts",), ("num_experts_per_tok",))
    first = config.count("first_k_dense_replace", default=1, minimum=0).value
    width, shared = config.count("moe_intermediate_size"), config.count("n_shared_experts", default=1, minimum=0)
    beside = ConfigValue(shared.value * width.value, "n_shared_experts x moe_intermediate_size", shared.place)
    return _mix_layers(keys, lambda index: index >= first, width, "first_k_dense_replace, intermediate_size", beside)


def gpt_oss(config: Config) -> Keys:
    """Return the keys of gpt-oss: windows in every second layer, attention sinks, biases everywhere, including the router."""
    keys = decoder_keys(config)
    set_biases(config, keys, {"attention_bias": ATTENTION}, ("ffn", "router"), default=True)
    keys["sinks"], keys["top_p"] = family_constant(True, config), family_constant(False, config)
    _set_experts(config, keys, ("num_local_experts", "num_experts"), ("num_experts_per_tok", "experts_per_token"))
    return set_layer_windows(
        keys, *layer_windows_of(config, keys, alternating_layer_types(required_key(keys, "layers").value, 2))
    )


def llama4(config: Config) -> Keys:
    """Return the keys of Llama 4: experts in some layers, a shared expert; chunked attention in most layers."""
    keys = plain(config)
    config.find("use_qk_norm")  # norms without parameters
    _set_experts(config, keys, ("num_local_experts",), ("num_experts_per_tok",))
    dense = config.count("intermediate_size_mlp")
    step, count = config.count("interleave_moe_layer_step", default=1).value, required_key(keys, "layers").value
    listed = config.listed("moe_layers", int)
    expert_layers = set(range(step - 1, count, step) if listed is None else listed.value)
    keys["shared"] = ConfigValue(required_key(keys, "ffn").value, "as wide as an expert")
    ropes = config.listed("no_rope_layers", int)
    interval = config.count("no_rope_layer_interval", default=4).value
    types = alternating_layer_types(count, interval, "chunked_attention")
    if ropes and len(ropes.value) == count:
        types = ["chunked_attention" if rope == 1 else "full_attention" for rope in ropes.value]
    layer_windows, origin = layer_windows_of(config, keys, types, "attention_chunk_size")
    feed: list[RunKeys] = [{} if index in expert_layers else {"experts": 1, "ffn": dense.value} for index in range(count)]
    if not expert_layers & set(range(count)):
        keys |= {"experts": None, "top_k": None, "shared": None}
    said = f"{origin}, interleave_moe_layer_step, intermediate_size_mlp; a chunk counts as a window"
    return set_layer_windows(keys, merge_layer_keys(layer_windows, feed), said)
