"""Keys of configs that no shape depends on: they are listed apart from those that are not known."""

from __future__ import annotations

from typing import Final

NAMES: Final = frozenset({
    "activation_function", "apply_residual_connection_post_layernorm", "architectures", "attention_dropout",
    "attention_multiplier", "attention_probs_dropout_prob", "attention_scaling_factor", "attn_logit_softcapping",
    "attn_pdrop", "attn_scale", "attn_temperature_tuning", "auto_map", "aux_loss_alpha", "cache_implementation",
    "chunk_size_feed_forward", "classifier_dropout", "clip_qkv", "dtype", "embd_dropout", "embd_pdrop",
    "embedding_initializer_range", "embedding_multiplier", "encoder_stride", "ep_size", "feed_forward_proj",
    "final_logit_softcapping", "finetuning_task", "floor_scale", "for_llm_compressor", "gradient_checkpointing",
    "hidden_act", "hidden_activation", "id2label", "initial_context_length", "label2id", "layer_norm_epsilon",
    "logit_scale", "logits_scaling", "logits_to_keep", "masked_softmax_fusion", "max_length", "model_type",
    "moe_layer_id", "n_group", "n_positions_", "norm_eps", "norm_epsilon", "norm_topk_prob", "offset_alibi",
    "original_max_position_embeddings", "parallel_attn", "partial_rotary_factor", "pretraining_tp", "problem_type",
    "query_pre_attn_scalar", "reorder_and_upcast_attn", "resid_dropout", "resid_pdrop", "residual_multiplier",
    "return_dict", "rms_norm_eps", "rotary_dim", "rotary_emb_base", "rotary_pct", "routed_scaling_factor",
    "router_aux_loss_coef", "router_jitter_noise", "scoring_func", "seq_aux", "seq_length", "slow_but_exact",
    "swiglu_limit", "task_specific_params", "topk_group", "topk_method", "torch_dtype", "transformers_version",
    "unk_token_id", "use_bidirectional_attention", "use_cache", "use_parallel_residual", "use_return_dict",
})  # fmt: skip
STARTS: Final = (
    "_", "bos_token", "do_", "hidden_dropout", "init_", "initializer_", "is_", "layer_norm_eps", "output_", "pooler_",
    "qkv_bias_in_", "rope_", "scale_attn_", "skip_bias_add", "summary_", "swiglu_",
)  # fmt: skip
ENDS: Final = ("_token_id", "_token_ids", "_token_index", "_eps", "_theta", "dropout", "_token_id_list", "_prob")


def is_idle(key: str) -> bool:
    """Whether no shape depends on a key.

    >>> is_idle("rope_theta"), is_idle("eos_token_id"), is_idle("hidden_size")
    (True, True, False)
    """
    return key in NAMES or key.startswith(STARTS) or key.endswith(ENDS)
