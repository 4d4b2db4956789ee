# SPDX-License-Identifier: Apache-2.0
"""Transformers for texts, built from configurations: nothing is downloaded, weights are random."""

from __future__ import annotations

from typing import Any


def sized(width: int, layers: int, heads: int, inner: int = 0) -> dict:
    return {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner or 4 * width,
    }


# Class of the model, class of its configuration, and what differs from the configuration's defaults.
MODELS: dict[str, tuple[str, str, dict]] = {
    "bert-mini": ("BertForMaskedLM", "BertConfig", sized(256, 4, 4)),
    "bert-small": ("BertForMaskedLM", "BertConfig", sized(512, 4, 8)),
    "bert-base": ("BertForMaskedLM", "BertConfig", {}),
    "bert-large": ("BertForMaskedLM", "BertConfig", sized(1024, 24, 16)),
    "roberta-base": ("RobertaForMaskedLM", "RobertaConfig", {"max_position_embeddings": 514}),
    "distilbert-base": ("DistilBertForMaskedLM", "DistilBertConfig", {}),
    "electra-small": ("ElectraForMaskedLM", "ElectraConfig", {}),
    "electra-base": ("ElectraForMaskedLM", "ElectraConfig", {**sized(768, 12, 12), "embedding_size": 768}),
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
    "llama-160m": ("LlamaForCausalLM", "LlamaConfig", sized(768, 12, 12, 3072)),
    "llama-1b": ("LlamaForCausalLM", "LlamaConfig", {**sized(2048, 16, 32, 8192), "num_key_value_heads": 8}),
    "qwen2-0.5b": ("Qwen2ForCausalLM", "Qwen2Config", {**sized(896, 24, 14, 4864), "num_key_value_heads": 2}),
    "gemma-small": (
        "GemmaForCausalLM",
        "GemmaConfig",
        {**sized(1024, 8, 8, 4096), "num_key_value_heads": 1, "head_dim": 128, "vocab_size": 64000},
    ),
    "phi-small": ("PhiForCausalLM", "PhiConfig", sized(1024, 12, 16)),
    "falcon-small": ("FalconForCausalLM", "FalconConfig", sized(1024, 12, 16)),
    "albert-base": ("AlbertForMaskedLM", "AlbertConfig", sized(768, 12, 12)),
    "albert-large": ("AlbertForMaskedLM", "AlbertConfig", sized(1024, 24, 16)),
    "t5-small": ("T5ForConditionalGeneration", "T5Config", {}),
    "t5-base": (
        "T5ForConditionalGeneration",
        "T5Config",
        {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12},
    ),
    "pythia-160m": ("GPTNeoXForCausalLM", "GPTNeoXConfig", sized(768, 12, 12)),
    "pythia-410m": ("GPTNeoXForCausalLM", "GPTNeoXConfig", sized(1024, 24, 16)),
}


def make(name: str) -> Any:
    import transformers

    model, configuration, changes = MODELS[name]
    made = getattr(transformers, configuration)(**changes)
    made.use_cache = False
    return getattr(transformers, model)(made)


def has_decoder(name: str) -> bool:
    return MODELS[name][0].endswith("ForConditionalGeneration")
