# SPDX-License-Identifier: Apache-2.0
"""NCF (NeuMF): a product of embeddings and a multilayer perceptron rate pairs of users and items."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .layers import Scope, binary_cross_entropy, embed, linear


def rate(scope: Scope, users: jax.Array, items: jax.Array, settings: dict) -> jax.Array:
    factors, widths = settings["factors"], settings["mlp_widths"]
    product = embed(scope, "product_users", users, settings["users"], factors)
    product = product * embed(scope, "product_items", items, settings["items"], factors)
    mlp_users = embed(scope, "mlp_users", users, settings["users"], widths[0] // 2)
    mlp_items = embed(scope, "mlp_items", items, settings["items"], widths[0] // 2)
    x = jnp.concatenate([mlp_users, mlp_items], axis=-1)
    for number, width in enumerate(widths[1:]):
        x = jax.nn.relu(linear(scope, f"mlp.{number}", x, width))
    return linear(scope, "rating", jnp.concatenate([product, x], axis=-1), 1)[..., 0]


def compute_loss(scope: Scope, batch: dict, settings: dict) -> jax.Array:
    return binary_cross_entropy(rate(scope, batch["users"], batch["items"], settings), batch["liked"]).mean()


def predict(scope: Scope, batch: dict, settings: dict) -> dict:
    items = batch["ranked_items"]
    users = jnp.broadcast_to(batch["ranked_users"][:, None], items.shape)
    return {"best": jax.lax.top_k(rate(scope, users, items, settings), 10)[1]}
