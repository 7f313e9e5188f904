"""Configs as their authors publish them on Hugging Face, what of them shapes depend on, and the parameters of the weights.

Parameters of the language model: without vision, without layers that predict further tokens, without the head of a task.
"""

from __future__ import annotations

from typing import Any, Final

Keys = dict[str, Any]


def of(model_type: str, layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, vocab: int, **more: Any) -> Keys:
    """A config with the usual keys."""
    return {
        "model_type": model_type, "num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "intermediate_size": ffn, "vocab_size": vocab, "max_position_embeddings": 32768, **more,
    }  # fmt: skip


def deepseek(layers: int, hidden: int, heads: int, ffn: int, vocab: int, experts: int, inner: int, top_k: int, shared: int,
             queries: int | None, first: int, kind: str = "deepseek_v3", **more: Any) -> Keys:  # fmt: skip
    """A config with latent attention."""
    return of(
        kind, layers, hidden, heads, heads, ffn, vocab, n_routed_experts=experts, moe_intermediate_size=inner,
        num_experts_per_tok=top_k, n_shared_experts=shared, q_lora_rank=queries, kv_lora_rank=512, qk_nope_head_dim=128,
        qk_rope_head_dim=64, v_head_dim=128, first_k_dense_replace=first, moe_layer_freq=1, tie_word_embeddings=False, **more,
    )  # fmt: skip


V3: Final[dict[str, Any]] = {
    "layers": 61, "hidden": 7168, "heads": 128, "ffn": 18432, "vocab": 129280, "experts": 256, "inner": 2048, "top_k": 8,
    "shared": 1, "queries": 1536, "first": 3, "num_nextn_predict_layers": 1,
    "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]},
}  # fmt: skip
QWEN3: Final = {"head_dim": 128, "tie_word_embeddings": False, "attention_bias": False}
MXFP4: Final = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}
GPT_OSS: Final = {"head_dim": 64, "num_experts_per_tok": 4, "sliding_window": 128, "quantization_config": MXFP4,
                  "tie_word_embeddings": False, "attention_bias": True}  # fmt: skip
PARAMETERS: Final[dict[str, tuple[Keys, int]]] = {
    "llama-3.1-8b": (of("llama", 32, 4096, 32, 8, 14336, 128256, tie_word_embeddings=False), 8_030_261_248),
    "llama-3.1-70b": (of("llama", 80, 8192, 64, 8, 28672, 128256, tie_word_embeddings=False), 70_553_706_496),
    "llama-3.1-405b": (of("llama", 126, 16384, 128, 8, 53248, 128256, tie_word_embeddings=False), 405_853_388_800),
    "llama-3.2-1b": (of("llama", 16, 2048, 32, 8, 8192, 128256, head_dim=64, tie_word_embeddings=True), 1_235_814_400),
    "mistral-7b": (of("mistral", 32, 4096, 32, 8, 14336, 32000, sliding_window=4096), 7_241_732_096),
    "phi-3-mini": (of("phi3", 32, 3072, 32, 32, 8192, 32064, sliding_window=2047), 3_821_079_552),
    "phi-2": (of("phi", 32, 2560, 32, 32, 10240, 51200), 2_779_683_840),
    "mixtral-8x7b": (of("mixtral", 32, 4096, 32, 8, 14336, 32000, num_local_experts=8, num_experts_per_tok=2), 46_702_792_704),
    "mixtral-8x22b": (of("mixtral", 56, 6144, 48, 8, 16384, 32768, num_local_experts=8, num_experts_per_tok=2), 140_630_071_296),
    "minimax-m2": (
        of("minimax_m2", 62, 3072, 48, 8, 1536, 200064, num_local_experts=256, num_experts_per_tok=8, head_dim=128,
           use_qk_norm=True),
        228_689_748_992,
    ),
    "qwen2.5-7b": (of("qwen2", 28, 3584, 28, 4, 18944, 152064, use_sliding_window=False, sliding_window=131072), 7_615_616_512),
    "qwen3-0.6b": (of("qwen3", 28, 1024, 16, 8, 3072, 151936, **{**QWEN3, "tie_word_embeddings": True}), 596_049_920),
    "qwen3-8b": (of("qwen3", 36, 4096, 32, 8, 12288, 151936, **QWEN3), 8_190_735_360),
    "qwen3-32b": (of("qwen3", 64, 5120, 64, 8, 25600, 151936, **QWEN3), 32_762_123_264),
    "qwen3-30b-a3b": (
        of("qwen3_moe", 48, 2048, 32, 4, 6144, 151936, num_experts=128, num_experts_per_tok=8, moe_intermediate_size=768,
           decoder_sparse_step=1, mlp_only_layers=[], **QWEN3),
        30_532_122_624,
    ),
    "qwen3-235b-a22b": (
        of("qwen3_moe", 94, 4096, 64, 4, 12288, 151936, num_experts=128, num_experts_per_tok=8, moe_intermediate_size=1536,
           decoder_sparse_step=1, mlp_only_layers=[], **QWEN3),
        235_093_634_560,
    ),
    "qwen1.5-moe-a2.7b": (
        of("qwen2_moe", 24, 2048, 16, 16, 5632, 151936, num_experts=60, num_experts_per_tok=4, moe_intermediate_size=1408,
           shared_expert_intermediate_size=5632, decoder_sparse_step=1),
        14_315_784_192,
    ),
    "deepseek-v2-lite": (
        deepseek(27, 2048, 16, 10944, 102400, 64, 1408, 6, 2, None, 1, "deepseek_v2"),
        15_706_484_224,
    ),
    "deepseek-v2": (deepseek(60, 5120, 128, 12288, 102400, 160, 1536, 6, 2, 1536, 1, "deepseek_v2"), 235_741_434_880),
    "deepseek-v3": (deepseek(**V3), 671_026_404_352),
    "deepseek-v3.2": (
        deepseek(**V3, kind="deepseek_v32", index_n_heads=64, index_head_dim=128, index_topk=2048),
        671_026_404_352 + 851_524_864,
    ),
    "kimi-k2": (
        deepseek(61, 7168, 64, 18432, 163840, 384, 2048, 8, 1, 1536, 1, "kimi_k2"),
        1_026_408_209_408,
    ),
    "gpt-oss-20b": (of("gpt_oss", 24, 2880, 64, 8, 2880, 201088, num_local_experts=32, **GPT_OSS), 20_914_757_184),
    "gpt-oss-120b": (of("gpt_oss", 36, 2880, 64, 8, 2880, 201088, num_local_experts=128, **GPT_OSS), 116_829_156_672),
    "gemma-7b": (of("gemma", 28, 3072, 16, 16, 24576, 256000, head_dim=256), 8_537_680_896),
    "gemma-2-2b": (of("gemma2", 26, 2304, 8, 4, 9216, 256000, head_dim=256, sliding_window=4096), 2_614_341_888),
    "gemma-3-1b": (
        of("gemma3_text", 26, 1152, 4, 1, 6912, 262144, head_dim=256, sliding_window=512, sliding_window_pattern=6),
        999_885_952,
    ),
    "gpt-neox-20b": (of("gpt_neox", 44, 6144, 64, 64, 24576, 50432, tie_word_embeddings=False), 20_554_567_680),
    "gpt-j-6b": (
        {"model_type": "gptj", "n_layer": 28, "n_embd": 4096, "n_head": 16, "vocab_size": 50400, "n_positions": 2048,
         "tie_word_embeddings": False},
        6_050_882_784,
    ),
    "gpt2": ({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257, "n_positions": 1024},
             124_439_808),
    "bert-base": (
        {"model_type": "bert", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072,
         "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2},
        109_482_240,
    ),
    "vit-base": (
        {"model_type": "vit", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072,
         "image_size": 224, "patch_size": 16, "num_channels": 3, "qkv_bias": True},
        85_798_656,
    ),
    "glm-4.5-air": (
        of("glm4_moe", 46, 4096, 96, 8, 10944, 151552, head_dim=128, attention_bias=True, n_routed_experts=128,
           num_experts_per_tok=8, moe_intermediate_size=1408, n_shared_experts=1, first_k_dense_replace=1, use_qk_norm=False,
           tie_word_embeddings=False, num_nextn_predict_layers=1),
        106_852_245_504,
    ),
    "llama-4-scout": (
        {"model_type": "llama4", "vision_config": {"model_type": "llama4_vision_model", "hidden_size": 1408},
         "text_config": of("llama4_text", 48, 5120, 40, 8, 8192, 202048, intermediate_size_mlp=16384, num_local_experts=16,
                           num_experts_per_tok=1, interleave_moe_layer_step=1, head_dim=128, attention_chunk_size=8192,
                           tie_word_embeddings=False)},
        107_769_861_120,
    ),
    "llama-4-maverick": (
        of("llama4_text", 48, 5120, 40, 8, 8192, 202048, intermediate_size_mlp=16384, num_local_experts=128,
           num_experts_per_tok=1, interleave_moe_layer_step=2, head_dim=128, attention_chunk_size=8192,
           tie_word_embeddings=False),
        400_711_848_960,
    ),
}  # fmt: skip
# What a token meets, in billions as printed by the authors (DeepSeek counts no embedding), or counted of the table.
ACTIVE: Final = {"qwen3-30b-a3b": 3.35, "qwen3-235b-a22b": 22.19, "mixtral-8x7b": 12.88, "mixtral-8x22b": 39.16,
                 "deepseek-v3": 37.55, "gpt-oss-20b": 4.19, "gpt-oss-120b": 5.71}  # fmt: skip
