# SPDX-License-Identifier: Apache-2.0
"""Assigns rows of `report --by layer` to parts of BERT or ALBERT, by the module names of the transformers package.
"""

from __future__ import annotations

ATTENTION, FEED_FORWARD = "self-attention", "feed-forward"
EMBEDDING, POOLER, HEAD, UPDATE, OTHER_PARTS = "embedding", "pooler", "heads and loss", "update", "rest"
LAYER_PARTS = (ATTENTION, FEED_FORWARD)
TRANSFORMER_PARTS = (ATTENTION, FEED_FORWARD, EMBEDDING, POOLER, HEAD, UPDATE, OTHER_PARTS)
UPDATE_PHASES = {"optimizer", "zero_grad", "gradients"}
PASSES = {"forward", "backward", "recompute"}
HEADS = ("cls", "predictions", "sop_classifier", "classifier", "dropout")
# In ALBERT, the layer itself contains the modules of the feed-forward part.
ALBERT_LAYER = "albert_layers."


def transformer_part_of(path: list[str]) -> str:
    """Returns the part of a row. `path`: mode, phase, layer."""
    if UPDATE_PHASES.intersection(path):
        return UPDATE
    if "loss" in path:
        return HEAD
    layer = path[-1]
    if layer in PASSES or not PASSES.intersection(path):
        return OTHER_PARTS
    names = layer.split(".")
    if "attention" in names:
        return ATTENTION
    if "embeddings" in names or "embedding_hidden_mapping_in" in names:
        return EMBEDDING
    if "pooler" in names or "pooler_activation" in names:
        return POOLER
    if names[0] in HEADS:
        return HEAD
    if ALBERT_LAYER in layer or "intermediate" in names or "output" in names:
        return FEED_FORWARD
    return OTHER_PARTS
