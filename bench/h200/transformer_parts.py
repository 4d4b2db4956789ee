# SPDX-License-Identifier: Apache-2.0
"""Assigns rows of `report --by layer` to parts of BERT or ALBERT, by the module names of the transformers package.
"""

from __future__ import annotations

ATTENTION_PART, FEED_FORWARD_PART = "self-attention", "feed-forward"
EMBEDDING_PART, POOLER_PART, HEAD_PART, UPDATE_PART, OTHER_PARTS = "embedding", "pooler", "heads and loss", "update", "rest"
LAYER_PARTS = (ATTENTION_PART, FEED_FORWARD_PART)
TRANSFORMER_PARTS = (ATTENTION_PART, FEED_FORWARD_PART, EMBEDDING_PART, POOLER_PART, HEAD_PART, UPDATE_PART, OTHER_PARTS)
UPDATE_PHASES = {"optimizer", "zero_grad", "gradients"}
PASS_PHASES = {"forward", "backward", "recompute"}
HEAD_MODULES = ("cls", "predictions", "sop_classifier", "classifier", "dropout")
# In ALBERT, the layer itself contains the modules of the feed-forward part.
ALBERT_LAYER = "albert_layers."


def transformer_part_of(path: list[str]) -> str:
    """Returns the part of a row. `path`: mode, phase, layer."""
    if UPDATE_PHASES.intersection(path):
        return UPDATE_PART
    if "loss" in path:
        return HEAD_PART
    layer = path[-1]
    if layer in PASS_PHASES or not PASS_PHASES.intersection(path):
        return OTHER_PARTS
    names = layer.split(".")
    if "attention" in names:
        return ATTENTION_PART
    if "embeddings" in names or "embedding_hidden_mapping_in" in names:
        return EMBEDDING_PART
    if "pooler" in names or "pooler_activation" in names:
        return POOLER_PART
    if names[0] in HEAD_MODULES:
        return HEAD_PART
    if ALBERT_LAYER in layer or "intermediate" in names or "output" in names:
        return FEED_FORWARD_PART
    return OTHER_PARTS
