# SPDX-License-Identifier: Apache-2.0
"""NCF (NeuMF): a product of embeddings and a multilayer perceptron rate pairs of users and items."""

from __future__ import annotations

import keras
import tensorflow as tf
from keras import layers


class Network(keras.Model):
    def __init__(self, settings: dict) -> None:
        super().__init__()
        factors, widths = settings["factors"], settings["mlp_widths"]
        self.product_users = layers.Embedding(settings["users"], factors, name="product_users")
        self.product_items = layers.Embedding(settings["items"], factors, name="product_items")
        self.mlp_users = layers.Embedding(settings["users"], widths[0] // 2, name="mlp_users")
        self.mlp_items = layers.Embedding(settings["items"], widths[0] // 2, name="mlp_items")
        self.mlp = [layers.Dense(width, "relu", name=f"mlp.{i}") for i, width in enumerate(widths[1:])]
        self.rating = layers.Dense(1, name="rating")

    def rate(self, users: tf.Tensor, items: tf.Tensor) -> tf.Tensor:
        product = self.product_users(users) * self.product_items(items)
        x = tf.concat([self.mlp_users(users), self.mlp_items(items)], axis=-1)
        for layer in self.mlp:
            x = layer(x)
        return self.rating(tf.concat([product, x], axis=-1))[..., 0]

    def compute_training_loss(self, batch: dict) -> tf.Tensor:
        logits = self.rate(batch["users"], batch["items"])
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=batch["liked"], logits=logits))

    def infer(self, batch: dict) -> dict:
        items = batch["ranked_items"]
        users = tf.broadcast_to(batch["ranked_users"][:, None], items.shape)
        return {"best": tf.math.top_k(self.rate(users, items), 10).indices}
