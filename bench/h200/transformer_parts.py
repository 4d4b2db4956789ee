# SPDX-License-Identifier: Apache-2.0
"""Which part of BERT or ALBERT a row of `report --by layer` belongs to, by the names that transformers gives to
modules.
"""

from __future__ import annotations

ATTENTION, FEED_FORWARD = "self-attention", "feed-forward"
EMBEDDING, POOLER, HEAD, UPDATE, REST = "embedding", "pooler", "heads and loss", "update", "rest"
LAYER_PARTS = (ATTENTION, FEED_FORWARD)
PARTS = (ATTENTION, FEED_FORWARD, EMBEDDING, POOLER, HEAD, UPDATE, REST)
UPDATE_PHASES = {"optimizer", "zero_grad", "gradients"}
PASSES = {"forward", "backward", "recompute"}
HEADS = ("cls", "predictions", "sop_classifier", "classifier", "dropout")
# A layer of ALBERT holds the modules of its feed-forward part itself.
ALBERT_LAYER = "albert_layers."


def part_of(path: list[str]) -> str:
    """`path`: mode, phase, layer."""
    if UPDATE_PHASES.intersection(path):
        return UPDATE
    if "loss" in path:
        return HEAD
    layer = path[-1]
    if layer in PASSES or not PASSES.intersection(path):
        return REST
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
    return REST
