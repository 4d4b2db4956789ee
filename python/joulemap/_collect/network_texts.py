# SPDX-License-Identifier: Apache-2.0
"""Text transformers built from configurations with random weights; nothing is downloaded."""

from __future__ import annotations

from typing import Any


def model_sizes(width: int, layers: int, heads: int, inner: int = 0) -> dict:
    return {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner or 4 * width,
    }


def encoder_decoder_sizes(width: int, layers: int, heads: int) -> dict:
    """Sizes of an encoder and an equally large decoder."""
    size_by_attribute = {"layers": layers, "attention_heads": heads, "ffn_dim": 4 * width}
    return {
        "d_model": width,
        **{f"{part}_{name}": size_by_attribute[name] for part in ("encoder", "decoder") for name in size_by_attribute},
    }


# Class of the model, class of its configuration, and overrides of the configuration's defaults.
TEXT_MODELS: dict[str, tuple[str, str, dict]] = {
    "bert-mini": ("BertForMaskedLM", "BertConfig", model_sizes(256, 4, 4)),
    "bert-small": ("BertForMaskedLM", "BertConfig", model_sizes(512, 4, 8)),
    "bert-base": ("BertForMaskedLM", "BertConfig", {}),
    "bert-large": ("BertForMaskedLM", "BertConfig", model_sizes(1024, 24, 16)),
    "roberta-base": ("RobertaForMaskedLM", "RobertaConfig", {"max_position_embeddings": 514}),
    "distilbert-base": ("DistilBertForMaskedLM", "DistilBertConfig", {}),
    "electra-small": ("ElectraForMaskedLM", "ElectraConfig", {}),
    "electra-base": ("ElectraForMaskedLM", "ElectraConfig", {**model_sizes(768, 12, 12), "embedding_size": 768}),
    "mobilebert": ("MobileBertForMaskedLM", "MobileBertConfig", {}),
    "squeezebert": ("SqueezeBertForMaskedLM", "SqueezeBertConfig", {"embedding_size": 768}),
    "mpnet-base": ("MPNetForMaskedLM", "MPNetConfig", {"max_position_embeddings": 514}),
    "deberta-base": ("DebertaForMaskedLM", "DebertaConfig", {"relative_attention": True, "pos_att_type": "c2p|p2c"}),
    "xlnet-base": ("XLNetLMHeadModel", "XLNetConfig", {"d_model": 768, "n_layer": 12, "n_head": 12, "d_inner": 3072}),
    "bart-base": (
        "BartForConditionalGeneration",
        "BartConfig",
        {
            **{
                "d_model": 768,
                "encoder_layers": 6,
                "decoder_layers": 6,
                "encoder_ffn_dim": 3072,
                "decoder_ffn_dim": 3072,
            },
            **{"encoder_attention_heads": 12, "decoder_attention_heads": 12},
        },
    ),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {}),
    "gpt2-medium": ("GPT2LMHeadModel", "GPT2Config", {"n_embd": 1024, "n_layer": 24, "n_head": 16}),
    "opt-125m": ("OPTForCausalLM", "OPTConfig", {"ffn_dim": 3072}),
    "opt-350m": (
        "OPTForCausalLM",
        "OPTConfig",
        {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "ffn_dim": 4096},
    ),
    "bloom-small": (
        "BloomForCausalLM",
        "BloomConfig",
        {"hidden_size": 768, "n_layer": 8, "n_head": 12, "vocab_size": 50000},
    ),
    "llama-160m": ("LlamaForCausalLM", "LlamaConfig", model_sizes(768, 12, 12, 3072)),
    "llama-1b": ("LlamaForCausalLM", "LlamaConfig", {**model_sizes(2048, 16, 32, 8192), "num_key_value_heads": 8}),
    "qwen2-0.5b": ("Qwen2ForCausalLM", "Qwen2Config", {**model_sizes(896, 24, 14, 4864), "num_key_value_heads": 2}),
    "gemma-small": (
        "GemmaForCausalLM",
        "GemmaConfig",
        {**model_sizes(1024, 8, 8, 4096), "num_key_value_heads": 1, "head_dim": 128, "vocab_size": 64000},
    ),
    "phi-small": ("PhiForCausalLM", "PhiConfig", model_sizes(1024, 12, 16)),
    "falcon-small": ("FalconForCausalLM", "FalconConfig", model_sizes(1024, 12, 16)),
    "roberta-large": (
        "RobertaForMaskedLM",
        "RobertaConfig",
        {**model_sizes(1024, 24, 16), "max_position_embeddings": 514},
    ),
    "deberta-v2-base": (
        "DebertaV2ForMaskedLM",
        "DebertaV2Config",
        {
            **model_sizes(768, 12, 12),
            **{"relative_attention": True, "pos_att_type": "c2p|p2c", "share_att_key": True, "position_buckets": 256},
            **{"norm_rel_ebd": "layer_norm", "position_biased_input": False, "type_vocab_size": 0},
        },
    ),
    "ernie-base": ("ErnieForMaskedLM", "ErnieConfig", {}),
    "modernbert-base": ("ModernBertForMaskedLM", "ModernBertConfig", {}),
    "roformer-base": ("RoFormerForMaskedLM", "RoFormerConfig", {}),
    "convbert-base": ("ConvBertForMaskedLM", "ConvBertConfig", {}),
    "funnel-small": ("FunnelForMaskedLM", "FunnelConfig", {}),
    "nystromformer-base": ("NystromformerForMaskedLM", "NystromformerConfig", {"max_position_embeddings": 512}),
    "mbart-small": ("MBartForConditionalGeneration", "MBartConfig", encoder_decoder_sizes(768, 6, 12)),
    "pegasus-small": (
        "PegasusForConditionalGeneration",
        "PegasusConfig",
        {**encoder_decoder_sizes(512, 8, 8), "vocab_size": 96103},
    ),
    "marian-base": ("MarianMTModel", "MarianConfig", encoder_decoder_sizes(512, 6, 8)),
    "gpt-neo-125m": (
        "GPTNeoForCausalLM",
        "GPTNeoConfig",
        {"hidden_size": 768, "num_layers": 12, "num_heads": 12, "attention_types": [[["global", "local"], 6]]},
    ),
    "starcoder-small": ("GPTBigCodeForCausalLM", "GPTBigCodeConfig", {}),
    "mpt-small": ("MptForCausalLM", "MptConfig", {"d_model": 1024, "n_layers": 12, "n_heads": 16}),
    "mistral-small": ("MistralForCausalLM", "MistralConfig", {**model_sizes(1024, 12, 16, 3584), "num_key_value_heads": 4}),
    "stablelm-small": (
        "StableLmForCausalLM",
        "StableLmConfig",
        {**model_sizes(1024, 12, 16, 2816), "num_key_value_heads": 16},
    ),
    "olmo-small": ("OlmoForCausalLM", "OlmoConfig", model_sizes(1024, 12, 16)),
    "granite-small": ("GraniteForCausalLM", "GraniteConfig", {**model_sizes(1024, 16, 16, 2816), "num_key_value_heads": 4}),
    "qwen3-small": (
        "Qwen3ForCausalLM",
        "Qwen3Config",
        {**model_sizes(1024, 12, 16, 3072), "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 64000},
    ),
    "phi3-small": ("Phi3ForCausalLM", "Phi3Config", {**model_sizes(1024, 16, 16, 2816), "pad_token_id": 0}),
    "gemma2-small": (
        "Gemma2ForCausalLM",
        "Gemma2Config",
        {**model_sizes(1024, 10, 8, 4096), "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 64000},
    ),
    "falcon-alibi": (
        "FalconForCausalLM",
        "FalconConfig",
        {**model_sizes(768, 16, 12), "alibi": True, "multi_query": False, "parallel_attn": False},
    ),
    "albert-base": ("AlbertForMaskedLM", "AlbertConfig", model_sizes(768, 12, 12)),
    "albert-large": ("AlbertForMaskedLM", "AlbertConfig", model_sizes(1024, 24, 16)),
    "t5-small": ("T5ForConditionalGeneration", "T5Config", {}),
    "t5-base": (
        "T5ForConditionalGeneration",
        "T5Config",
        {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12},
    ),
    "pythia-160m": ("GPTNeoXForCausalLM", "GPTNeoXConfig", model_sizes(768, 12, 12)),
    "pythia-410m": ("GPTNeoXForCausalLM", "GPTNeoXConfig", model_sizes(1024, 24, 16)),
}


def make_text_model(name: str) -> Any:
    import transformers

    model_class, config_class, config_overrides = TEXT_MODELS[name]
    model_config = getattr(transformers, config_class)(**config_overrides)
    model_config.use_cache = False
    return getattr(transformers, model_class)(model_config)


def has_decoder(name: str) -> bool:
    return TEXT_MODELS[name][0].endswith(("ForConditionalGeneration", "MTModel"))
