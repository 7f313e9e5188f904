"""Small configs of every family, with the keys that change shapes drawn at random."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

Drawn = dict[str, list[Any]]
SIZES: Drawn = {"hidden_size": [64, 96], "num_hidden_layers": [1, 2, 5, 7], "num_attention_heads": [4, 8],
         "num_key_value_heads": [1, 2, 4], "intermediate_size": [96, 160],
         "vocab_size": [100, 333], "max_position_embeddings": [64, 128],
         "tie_word_embeddings": [True, False]}  # fmt: skip
BIASED: Drawn = {"attention_bias": [True, False]}
EXPERTS: Drawn = {"num_experts_per_tok": [1, 2], "moe_intermediate_size": [16, 48]}
LATENT: Drawn = {"kv_lora_rank": [16, 24], "q_lora_rank": [32, 40], "qk_nope_head_dim": [8, 16], "qk_rope_head_dim": [4, 8],
          "v_head_dim": [8, 12], "n_shared_experts": [1, 2], "n_routed_experts": [4, 8], "first_k_dense_replace": [0, 1, 3],
          "n_group": [1], "topk_group": [1], "num_key_value_heads": [8], "num_attention_heads": [8],
          "attention_bias": [True, False]}  # fmt: skip
GPT: Drawn = {"n_embd": [64, 96], "n_layer": [1, 3], "n_head": [4, 8], "vocab_size": [100, 333], "n_positions": [32, 64],
       "n_inner": [None, 100]}  # fmt: skip
BERT: Drawn = {key: sizes for key, sizes in SIZES.items() if key not in ("num_key_value_heads", "tie_word_embeddings")}
# keys of each family, with what they may be
DRAWN: Final[dict[str, Drawn]] = {
    "llama": {**SIZES, **BIASED, "mlp_bias": [True, False], "head_dim": [16, 32]},
    "granite": {**SIZES, **BIASED, "mlp_bias": [True, False]},
    "mistral": {**SIZES, "head_dim": [16, 24], "sliding_window": [None, 32]},
    "mixtral": {**SIZES, "num_local_experts": [2, 4], "num_experts_per_tok": [1, 2], "head_dim": [16]},
    "minimax_m2": {**SIZES, "num_local_experts": [2, 4], "num_experts_per_tok": [1, 2], "head_dim": [16, 32]},
    "qwen2": {**SIZES, "use_sliding_window": [True, False], "sliding_window": [32], "max_window_layers": [0, 1, 3]},
    "qwen2_moe": {**SIZES, **EXPERTS, "num_experts": [4, 6], "shared_expert_intermediate_size": [32, 40],
                  "decoder_sparse_step": [1, 2, 3], "mlp_only_layers": [[], [0]], "qkv_bias": [True, False]},
    "qwen3": {**SIZES, **BIASED, "head_dim": [16, 32]},
    "qwen3_moe": {**SIZES, **EXPERTS, **BIASED, "num_experts": [4, 6], "head_dim": [16, 32], "decoder_sparse_step": [1, 2],
                  "mlp_only_layers": [[], [0]]},
    "gemma": {**SIZES, **BIASED, "head_dim": [16, 32]},
    "gemma2": {**SIZES, **BIASED, "head_dim": [16, 32], "sliding_window": [32]},
    "gemma3_text": {**SIZES, **BIASED, "head_dim": [16, 32], "sliding_window": [32]},
    "gemma4_text": {**SIZES, **BIASED, "head_dim": [16, 32], "sliding_window": [32], "global_head_dim": [32, 64],
                    "num_global_key_value_heads": [1, 2], "attention_k_eq_v": [True, False], "hidden_size_per_layer_input": [0],
                    "enable_moe_block": [True, False], "num_experts": [4], "top_k_experts": [2], "moe_intermediate_size": [24]},
    "gpt2": GPT,
    "gptj": {**GPT, "rotary_dim": [8]},
    "gpt_neox": {**BERT, **BIASED, "tie_word_embeddings": [True, False]},
    "gpt_oss": {**SIZES, **BIASED, "head_dim": [16, 32], "num_local_experts": [2, 4], "num_experts_per_tok": [1, 2],
                "sliding_window": [32]},
    "phi": {**SIZES},
    "phi3": {**SIZES, "sliding_window": [None, 32], "pad_token_id": [0]},
    "starcoder2": {**SIZES, "use_bias": [True, False], "sliding_window": [None]},
    "olmo2": {**SIZES, **BIASED, "pad_token_id": [0]},
    "olmo3": {**SIZES, **BIASED, "pad_token_id": [0], "sliding_window": [32]},
    "olmoe": {**SIZES, **BIASED, "num_experts": [2, 4], "num_experts_per_tok": [1, 2], "pad_token_id": [0]},
    "opt": {"hidden_size": [64, 96], "num_hidden_layers": [1, 3], "num_attention_heads": [4, 8], "ffn_dim": [96, 160],
            "vocab_size": [100], "max_position_embeddings": [64], "enable_bias": [True, False], "word_embed_proj_dim": [None],
            "pad_token_id": [0]},
    "bloom": {"hidden_size": [64, 96], "n_layer": [1, 3], "n_head": [4, 8], "vocab_size": [100, 333]},
    "bert": {**BERT, "type_vocab_size": [1, 2]},
    "roberta": {**BERT, "type_vocab_size": [1, 2], "pad_token_id": [0]},
    "vit": {"hidden_size": [64, 96], "num_hidden_layers": [1, 3], "num_attention_heads": [4, 8], "intermediate_size": [96],
            "image_size": [32, 64], "patch_size": [8, 16], "num_channels": [1, 3], "qkv_bias": [True, False]},
    "glm4_moe": {**SIZES, **EXPERTS, **BIASED, "head_dim": [16, 32], "n_routed_experts": [4], "n_shared_experts": [1, 2],
                 "first_k_dense_replace": [0, 1, 3], "use_qk_norm": [True, False], "n_group": [1], "topk_group": [1]},
    "deepseek_v2": {**SIZES, **EXPERTS, **LATENT, "q_lora_rank": [None, 32]},
    "deepseek_v3": {**SIZES, **EXPERTS, **LATENT, "q_lora_rank": [None, 32]},
    "deepseek_v32": {**SIZES, **EXPERTS, **LATENT, "index_n_heads": [2, 4], "index_head_dim": [8, 16], "index_topk": [8]},
    "llama4_text": {**SIZES, **BIASED, "intermediate_size_mlp": [80, 128], "num_local_experts": [2, 4],
                    "num_experts_per_tok": [1], "interleave_moe_layer_step": [1, 2, 3], "head_dim": [16, 32],
                    "attention_chunk_size": [32]},
}  # fmt: skip


def configs(family: str) -> st.SearchStrategy[dict[str, Any]]:
    """Configs of a family."""
    drawn = st.fixed_dictionaries({key: st.sampled_from(values) for key, values in DRAWN[family].items()})
    return drawn.map(lambda keys: {"model_type": family, **keys})
