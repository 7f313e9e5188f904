"""Families of decoders with experts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hwsim.models.configs.config import Config, Told
from hwsim.models.configs.decoders import ATTENTION, Keys, biased, fixed, stack
from hwsim.models.configs.decoders import llama as dense_llama
from hwsim.models.configs.layers import Each, every, joined, put, windows


def _layers(keys: Keys) -> int:
    told = keys["layers"]
    assert told is not None
    return int(told.value)


def _chosen(config: Config, keys: Keys, experts: Sequence[str], top_k: Sequence[str]) -> None:
    keys |= {"experts": config.count(*experts), "top_k": config.count(*top_k)}


def _mixed(keys: Keys, has: Callable[[int], bool], width: Told, origin: str, shared: Told | None = None) -> Keys:
    """Layers with experts and layers without.

    Args:
        has: whether a layer has experts.
        width: width of an expert; a dense layer has the `ffn` of the keys.  shared: width of what all tokens go through.
    """
    dense = keys["ffn"]
    keys["ffn"] = width
    if shared is not None and shared.value:
        keys["shared"] = shared
    without: Each = {"experts": 1, "ffn": None if dense is None else dense.value}
    chosen = [has(at) for at in range(_layers(keys))]
    if not any(chosen):
        keys |= {"experts": None, "top_k": None, "shared": None, "shared_gate": None, "ffn": dense}
    elif not all(chosen):
        put(keys, [{} if some else without for some in chosen], origin)
    return keys


def mixtral(config: Config) -> Keys:
    """Mixtral, OLMoE, PhiMoE: all layers have experts."""
    keys = stack(config)
    _chosen(config, keys, ("num_local_experts", "num_experts"), ("num_experts_per_tok",))
    kinds, origin = windows(config, _layers(keys), "sliding_window", ["sliding_attention"] * _layers(keys))
    put(keys, kinds, origin)
    if any(kind.get("window") for kind in kinds):
        keys["cache"] = Told("window", "as servers keep it")
    return keys


def olmoe(config: Config) -> Keys:
    """OLMoE."""
    keys = stack(config)
    _chosen(config, keys, ("num_experts",), ("num_experts_per_tok",))
    biased(config, keys, {"attention_bias": ATTENTION})
    keys["qk_norm"] = fixed("whole", config)
    return keys


def minimax_m2(config: Config) -> Keys:
    """MiniMax M2: all layers have experts; queries and keys have norms over all heads."""
    keys = stack(config)
    _chosen(config, keys, ("num_local_experts",), ("num_experts_per_tok",))
    if config.flag("use_qk_norm", default=True).value:
        config.refuse_unless("qk_norm_type", ("per_layer", None), "norms of each head are none of this family's")
        keys["qk_norm"] = Told("whole", "use_qk_norm")
    return keys


def qwen2_moe(config: Config) -> Keys:
    """Qwen 2 with experts: one more network, with a gate."""
    keys = stack(config)
    keys["bias"] = Told(["q", "k", "v"] if config.flag("qkv_bias", default=True).value else False, "qkv_bias")
    keys["shared_gate"] = fixed(True, config)
    config.refuse_unless("use_sliding_window", (False, None), "windows of this family cannot be said")
    config.find("sliding_window", "max_window_layers", "layer_types")
    return _sparse(config, keys, config.count("shared_expert_intermediate_size"))


def qwen3_moe(config: Config) -> Keys:
    """Qwen 3 with experts."""
    keys = stack(config)
    biased(config, keys, {"attention_bias": ATTENTION})
    keys["qk_norm"] = fixed("head", config)
    config.refuse_unless("use_sliding_window", (False, None), "windows of this family cannot be said")
    config.find("sliding_window", "max_window_layers", "layer_types")
    return _sparse(config, keys, None)


def _sparse(config: Config, keys: Keys, shared: Told | None) -> Keys:
    _chosen(config, keys, ("num_experts", "num_local_experts"), ("num_experts_per_tok",))
    step = config.count("decoder_sparse_step", default=1).value
    without = config.listed("mlp_only_layers", int)
    only = () if without is None else without.value
    width = config.count("moe_intermediate_size")
    origin = "decoder_sparse_step, mlp_only_layers, intermediate_size"
    return _mixed(keys, lambda at: at not in only and (at + 1) % step == 0, width, origin, shared)


def deepseek(config: Config) -> Keys:
    """DeepSeek-V2, V3 and V3.2, Kimi K2: latent attention, the first layers dense, experts, some of them shared."""
    keys = stack(config) | {"kv_heads": None, "head": None}
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
    keys["latent"] = Told(latent, ", ".join((*names.values(), "q_lora_rank")), config.tree.key_place("kv_lora_rank"))
    biased(config, keys, {"attention_bias": ("q", "k", "projection"), "mlp_bias": ("ffn",)})
    if config.count("n_routed_experts", "num_local_experts", default=0, minimum=0).value:
        _chosen(config, keys, ("n_routed_experts", "num_local_experts"), ("num_experts_per_tok",))
    else:
        return keys
    first = config.count("first_k_dense_replace", default=0, minimum=0).value
    step = config.count("moe_layer_freq", default=1).value
    types = config.listed("mlp_layer_types", str, _layers(keys))
    width, shared = config.count("moe_intermediate_size"), config.count("n_shared_experts", default=0, minimum=0)
    beside = Told(shared.value * width.value, "n_shared_experts x moe_intermediate_size", shared.place)
    origin = "first_k_dense_replace, moe_layer_freq, intermediate_size"
    if types is not None:
        return _mixed(keys, lambda at: bool(types.value[at] == "sparse"), width, "mlp_layer_types, intermediate_size", beside)
    return _mixed(keys, lambda at: at >= first and at % step == 0, width, origin, beside)


def glm4_moe(config: Config) -> Keys:
    """GLM-4.5."""
    keys = stack(config)
    biased(config, keys, {"attention_bias": ("q", "k", "v")})
    if config.flag("use_qk_norm", default=False).value:
        keys["qk_norm"] = Told("head", "use_qk_norm")
    _chosen(config, keys, ("n_routed_experts",), ("num_experts_per_tok",))
    first = config.count("first_k_dense_replace", default=1, minimum=0).value
    width, shared = config.count("moe_intermediate_size"), config.count("n_shared_experts", default=1, minimum=0)
    beside = Told(shared.value * width.value, "n_shared_experts x moe_intermediate_size", shared.place)
    return _mixed(keys, lambda at: at >= first, width, "first_k_dense_replace, intermediate_size", beside)


def gpt_oss(config: Config) -> Keys:
    """gpt-oss: windows in every second layer, sinks, biases everywhere, the router's too."""
    keys = stack(config)
    biased(config, keys, {"attention_bias": ATTENTION}, ("ffn", "router"), default=True)
    keys["sinks"] = fixed(True, config)
    _chosen(config, keys, ("num_local_experts", "num_experts"), ("num_experts_per_tok", "experts_per_token"))
    kinds, origin = windows(config, _layers(keys), "sliding_window", every(_layers(keys), 2))
    put(keys, kinds, origin)
    if any(kind.get("window") for kind in kinds):
        keys["cache"] = Told("window", "as servers keep it")
    return keys


def llama4(config: Config) -> Keys:
    """Llama 4: experts in some layers, one of them shared; attention in chunks in most."""
    keys = dense_llama4(config)
    _chosen(config, keys, ("num_local_experts",), ("num_experts_per_tok",))
    width, dense = keys["ffn"], config.count("intermediate_size_mlp")
    step, count = config.count("interleave_moe_layer_step", default=1).value, _layers(keys)
    listed = config.listed("moe_layers", int)
    some = set(range(step - 1, count, step) if listed is None else listed.value)
    assert width is not None
    keys["shared"] = Told(width.value, "as wide as an expert")
    ropes = config.listed("no_rope_layers", int)
    interval = config.count("no_rope_layer_interval", default=4).value
    chunked = (
        [each == 1 for each in ropes.value]
        if ropes and len(ropes.value) == count
        else [(at + 1) % interval > 0 for at in range(count)]
    )
    types = ["chunked_attention" if each else "full_attention" for each in chunked]
    seen, origin = windows(config, count, "attention_chunk_size", types)
    feed: list[Each] = [{} if at in some else {"experts": 1, "ffn": dense.value} for at in range(count)]
    if not some & set(range(count)):
        keys |= {"experts": None, "top_k": None, "shared": None}
    put(keys, joined(seen, feed), f"{origin}, interleave_moe_layer_step, intermediate_size_mlp; a chunk counts as a window")
    if any(one.get("window") for one in seen):
        keys["cache"] = Told("window", "as servers keep it")
    return keys


def dense_llama4(config: Config) -> Keys:
    """The attention of Llama 4."""
    keys = stack(config)
    biased(config, keys, {"attention_bias": ATTENTION})
    config.find("use_qk_norm")  # norms without parameters
    return keys


__all__ = ["deepseek", "dense_llama", "glm4_moe", "gpt_oss", "llama4", "mixtral", "olmoe", "qwen2_moe", "qwen3_moe"]
