# SPDX-License-Identifier: Apache-2.0
"""Transformer-XL: each segment attends to itself and to the previous segment, by relative positions."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .layers import Scope, cross_entropy, embed, linear, normalize_layer


def make_position_encoding(length: int, width: int) -> jax.Array:
    """Sines and cosines of the distances length - 1 to 0: (length, width)."""
    distances = jnp.arange(length - 1, -1, -1, dtype=jnp.float32)
    frequencies = 10000.0 ** (-jnp.arange(0, width, 2) / width)
    angles = distances[:, None] * frequencies
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=1)


def shift_to_distances(scores: jax.Array) -> jax.Array:
    """Moves the score of each distance to the key at that distance: (batch, heads, queries, keys)."""
    batch, heads, queries, keys = scores.shape
    padded_scores = jnp.pad(scores, ((0, 0), (0, 0), (0, 0), (1, 0))).reshape(batch, heads, keys + 1, queries)
    return padded_scores[:, :, 1:].reshape(batch, heads, queries, keys)


def attend(
    scope: Scope, name: str, x: jax.Array, context: jax.Array, positions: jax.Array, mask: jax.Array, heads: int
) -> jax.Array:
    width = x.shape[-1]
    head_width = width // heads

    def project(part: str, values: jax.Array) -> jax.Array:
        values = linear(scope, f"{name}.{part}", values, width, has_bias=False)
        return values.reshape(*values.shape[:-1], heads, head_width).swapaxes(-3, -2)

    query, key, value = project("query", x), project("key", context), project("value", context)
    position = project("position", positions)
    content_bias = scope.get(f"{name}.content_bias", (heads, 1, head_width))
    position_bias = scope.get(f"{name}.position_bias", (heads, 1, head_width))
    content_scores = (query + content_bias) @ key.swapaxes(-1, -2)
    position_scores = shift_to_distances((query + position_bias) @ position.swapaxes(-1, -2))
    scores = (content_scores + position_scores) * head_width**-0.5 + mask
    x = (jax.nn.softmax(scores) @ value).swapaxes(1, 2).reshape(x.shape)
    return linear(scope, f"{name}.output", x, width, has_bias=False)


def run_block(
    scope: Scope, name: str, x: jax.Array, memory: jax.Array, positions: jax.Array, mask: jax.Array, settings: dict
) -> jax.Array:
    context = jnp.concatenate([memory, x], axis=1)
    attended = attend(scope, f"{name}.attention", x, context, positions, mask, settings["heads"])
    x = normalize_layer(scope, f"{name}.norm1", x + attended)
    hidden_activations = jax.nn.relu(linear(scope, f"{name}.linear1", x, settings["hidden_width"]))
    return normalize_layer(
        scope, f"{name}.norm2", x + linear(scope, f"{name}.linear2", hidden_activations, x.shape[-1])
    )


def read_text(scope: Scope, tokens: jax.Array, settings: dict) -> jax.Array:
    """Logits of the next tokens. Each block's memory is its input in the previous segment; the first one is zero."""
    width, segment = settings["width"], settings["segment"]
    positions = make_position_encoding(2 * segment, width)
    mask = jnp.triu(jnp.full((segment, 2 * segment), -1e9), k=segment + 1)
    memories = [jnp.zeros((len(tokens), segment, width))] * settings["layers"]
    logits = []
    for part in jnp.split(tokens, settings["segments"], axis=1):
        x, new_memories = embed(scope, "embedding", part, settings["vocabulary"], width), []
        for number, memory in enumerate(memories):
            new_memories.append(jax.lax.stop_gradient(x))
            x = run_block(scope, f"blocks.{number}", x, memory, positions, mask, settings)
        memories = new_memories
        logits.append(linear(scope, "output", x, settings["vocabulary"]))
    return jnp.concatenate(logits, axis=1)


def compute_loss(scope: Scope, batch: dict, settings: dict) -> jax.Array:
    return cross_entropy(read_text(scope, batch["inputs"], settings), batch["targets"]).mean()


def predict(scope: Scope, batch: dict, settings: dict) -> dict:
    return {"tokens": read_text(scope, batch["inputs"], settings).argmax(axis=-1)}
