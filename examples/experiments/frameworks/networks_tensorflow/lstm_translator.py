# SPDX-License-Identifier: Apache-2.0
"""A translator: LSTM encoder, LSTM decoder, dot-product attention on the encoder's outputs."""

from __future__ import annotations

import keras
import tensorflow as tf
from keras import layers

from .layers import cross_entropy


def make_lstm_layers(name: str, width: int, count: int) -> list[layers.LSTM]:
    lstms = []
    for number in range(count):
        lstm = layers.LSTM(width, use_bias=False, return_sequences=True, return_state=True, name=f"{name}.{number}")
        lstm.build((None, None, width))
        lstms.append(lstm)
    return lstms


class Network(keras.Model):
    def __init__(self, settings: dict) -> None:
        super().__init__()
        vocabulary, width, self.length = settings["vocabulary"], settings["width"], settings["length"]
        self.source_embedding = layers.Embedding(vocabulary, width, name="source_embedding")
        self.target_embedding = layers.Embedding(vocabulary, width, name="target_embedding")
        self.encoder = make_lstm_layers("encoder", width, settings["layers"])
        self.decoder = make_lstm_layers("decoder", width, settings["layers"])
        self.combination = layers.Dense(width, "tanh", name="combination")
        self.output_layer = layers.Dense(vocabulary, name="output")

    def encode(self, sources: tf.Tensor) -> tuple[tf.Tensor, list]:
        """Outputs of the last layer, and the final state of each layer."""
        x, states = self.source_embedding(sources), []
        for layer in self.encoder:
            x, *state = layer(x)
            states.append(state)
        return x, states

    def combine(self, x: tf.Tensor, encoded: tf.Tensor) -> tf.Tensor:
        """Logits of the next tokens, from outputs of the decoder and attention."""
        weights = tf.nn.softmax(tf.matmul(x, encoded, transpose_b=True))
        return self.output_layer(self.combination(tf.concat([tf.matmul(weights, encoded), x], axis=-1)))

    def compute_training_loss(self, batch: dict) -> tf.Tensor:
        encoded, states = self.encode(batch["sources"])
        x = self.target_embedding(batch["inputs"])
        for layer, state in zip(self.decoder, states):
            x, *_ = layer(x, initial_state=state)
        return tf.reduce_mean(cross_entropy(self.combine(x, encoded), batch["targets"]))

    def infer(self, batch: dict) -> dict:
        """Greedy decoding, token by token, in a loop of the graph."""
        encoded, states = self.encode(batch["sources"])
        token = tf.zeros_like(batch["sources"][:, 0])
        tokens = tf.TensorArray(tf.int32, self.length)
        for place in tf.range(self.length):
            x, new_states = self.target_embedding(token), []
            for layer, state in zip(self.decoder, states):
                x, state = layer.cell(x, state)
                new_states.append(state)
            states = new_states
            token = tf.argmax(self.combine(x[:, None], encoded)[:, 0], axis=-1, output_type=tf.int32)
            tokens = tokens.write(place, token)
        return {"tokens": tf.transpose(tokens.stack())}
