# SPDX-License-Identifier: Apache-2.0
"""Transformer-XL: each segment attends to itself and to the previous segment, by relative positions."""

from __future__ import annotations

import keras
import tensorflow as tf
from keras import layers

from .layers import NORM_EPSILON, Composite, cross_entropy


def make_position_encoding(length: int, width: int) -> tf.Tensor:
    """Sines and cosines of the distances length - 1 to 0: (length, width)."""
    distances = tf.range(length - 1, -1, -1, dtype=tf.float32)
    frequencies = 10000.0 ** (-tf.range(0, width, 2, dtype=tf.float32) / width)
    angles = distances[:, None] * frequencies
    return tf.concat([tf.sin(angles), tf.cos(angles)], axis=1)


def shift_to_distances(scores: tf.Tensor) -> tf.Tensor:
    """Moves the score of each distance to the key at that distance: (batch, heads, queries, keys)."""
    batch, heads, queries, keys = scores.shape
    padded_scores = tf.reshape(tf.pad(scores, ((0, 0), (0, 0), (0, 0), (1, 0))), (batch, heads, keys + 1, queries))
    return tf.reshape(padded_scores[:, :, 1:], (batch, heads, queries, keys))


class RelativeAttention(Composite):
    def __init__(self, name: str, width: int, heads: int) -> None:
        super().__init__(name)
        self.heads, self.head_width = heads, width // heads
        self.query, self.key, self.value, self.position, self.output_layer = (
            layers.Dense(width, use_bias=False, name=f"{name}.{part}")
            for part in ("query", "key", "value", "position", "output")
        )
        shape = (heads, 1, self.head_width)
        self.content_bias = self.add_weight(shape=shape, initializer="zeros", name="content_bias")
        self.position_bias = self.add_weight(shape=shape, initializer="zeros", name="position_bias")

    def split_heads(self, x: tf.Tensor) -> tf.Tensor:
        return tf.experimental.numpy.swapaxes(tf.reshape(x, (*x.shape[:-1], self.heads, self.head_width)), -3, -2)

    def call(self, x: tf.Tensor, context: tf.Tensor, positions: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        query, key, value = (self.split_heads(part) for part in (self.query(x), self.key(context), self.value(context)))
        position = self.split_heads(self.position(positions))
        content_scores = tf.matmul(query + self.content_bias, key, transpose_b=True)
        position_scores = shift_to_distances(tf.matmul(query + self.position_bias, position, transpose_b=True))
        scores = (content_scores + position_scores) * self.head_width**-0.5 + mask
        attended = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), (0, 2, 1, 3))
        return self.output_layer(tf.reshape(attended, x.shape))


class Block(Composite):
    def __init__(self, name: str, settings: dict) -> None:
        super().__init__(name)
        width = settings["width"]
        self.attention = RelativeAttention(f"{name}.attention", width, settings["heads"])
        self.norm1 = layers.LayerNormalization(epsilon=NORM_EPSILON, name=f"{name}.norm1")
        self.linear1 = layers.Dense(settings["hidden_width"], "relu", name=f"{name}.linear1")
        self.linear2 = layers.Dense(width, name=f"{name}.linear2")
        self.norm2 = layers.LayerNormalization(epsilon=NORM_EPSILON, name=f"{name}.norm2")

    def call(self, x: tf.Tensor, memory: tf.Tensor, positions: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        x = self.norm1(x + self.attention(x, tf.concat([memory, x], axis=1), positions, mask))
        return self.norm2(x + self.linear2(self.linear1(x)))


class Network(keras.Model):
    def __init__(self, settings: dict) -> None:
        super().__init__()
        self.settings, self.segment = settings, settings["segment"]
        self.embedding = layers.Embedding(settings["vocabulary"], settings["width"], name="embedding")
        self.blocks = [Block(f"blocks.{number}", settings) for number in range(settings["layers"])]
        self.output_layer = layers.Dense(settings["vocabulary"], name="output")
        self.positions = make_position_encoding(2 * self.segment, settings["width"])
        full_attention_mask = tf.fill((self.segment, 2 * self.segment), -1e9)
        self.mask = full_attention_mask - tf.linalg.band_part(
            full_attention_mask, -1, self.segment
        )  # keys after the query

    def read_segment(self, tokens: tf.Tensor, memories: list) -> tuple[tf.Tensor, list]:
        """Logits of the next tokens, and the inputs of each block: the memory of the next segment."""
        x, new_memories = self.embedding(tokens), []
        for block, memory in zip(self.blocks, memories):
            new_memories.append(tf.stop_gradient(x))
            x = block(x, memory, self.positions, self.mask)
        return self.output_layer(x), new_memories

    def read_text(self, tokens: tf.Tensor) -> tf.Tensor:
        """Logits of all segments. The memory of the first one is zero."""
        memories = [tf.zeros((tokens.shape[0], self.segment, self.settings["width"]))] * len(self.blocks)
        logits = []
        for segment in tf.split(tokens, self.settings["segments"], axis=1):
            segment_logits, memories = self.read_segment(segment, memories)
            logits.append(segment_logits)
        return tf.concat(logits, axis=1)

    def compute_training_loss(self, batch: dict) -> tf.Tensor:
        return tf.reduce_mean(cross_entropy(self.read_text(batch["inputs"]), batch["targets"]))

    def infer(self, batch: dict) -> dict:
        return {"tokens": tf.argmax(self.read_text(batch["inputs"]), axis=-1, output_type=tf.int32)}
