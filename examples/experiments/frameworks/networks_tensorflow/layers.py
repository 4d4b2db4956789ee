# SPDX-License-Identifier: Apache-2.0
"""Keras layers with the names and weights of the other frameworks."""

from __future__ import annotations

import keras
import tensorflow as tf
from keras import layers

from initial_weights import make_initial_value

NORM_EPSILON = 1e-5
NORM_MOMENTUM = 0.9
# Kind of each variable in `initial_weights`, by its name in Keras. The others begin as 0 or 1 in both.
KINDS = {"kernel": "kernel", "embeddings": "table"}
LSTM_KINDS = {"kernel": "input_kernel", "recurrent_kernel": "state_kernel"}
LSTM_CELL = "lstm_cell"


def make_convolution(name: str, outputs: int, size: int, stride: int = 1, has_bias: bool = True) -> layers.Conv2D:
    padding = "same" if stride == 1 else "valid"
    return layers.Conv2D(outputs, size, stride, padding=padding, use_bias=has_bias, name=name)


class Composite(layers.Layer):
    """A layer made of layers, which create their variables in the first call: Keras need not trace it before."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)
        self.built = True


class ConvNorm(Composite):
    """Convolution, batch norm and, unless switched off, ReLU."""

    def __init__(self, name: str, outputs: int, size: int, stride: int = 1, has_relu: bool = True) -> None:
        super().__init__(name)
        # With a stride, "same" would pad one side only.
        self.pad = layers.ZeroPadding2D(size // 2) if stride > 1 and size > 1 else None
        self.conv = make_convolution(f"{name}.conv", outputs, size, stride, has_bias=False)
        self.norm = layers.BatchNormalization(momentum=NORM_MOMENTUM, epsilon=NORM_EPSILON, name=f"{name}.norm")
        self.has_relu = has_relu

    def call(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        x = self.norm(self.conv(self.pad(x) if self.pad else x), training=training)
        return tf.nn.relu(x) if self.has_relu else x


class Pool(Composite):
    """Maximum of 3 x 3 with stride 2, of values of at least 0."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.pad = layers.ZeroPadding2D(1)
        self.pool = layers.MaxPooling2D(3, 2)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return self.pool(self.pad(x))


def name_parameter(variable: keras.Variable) -> str:
    """The name in `initial_weights`; empty for a scale or bias."""
    *layer_names, kind = variable.path.split("/")
    if LSTM_CELL in layer_names:
        return f"{layer_names[-2]}.{LSTM_KINDS[kind]}"
    return f"{layer_names[-1]}.{KINDS[kind]}" if kind in KINDS else ""


def set_initial_values(network: keras.Model) -> None:
    for variable in network.trainable_variables:
        if name := name_parameter(variable):
            variable.assign(make_initial_value(name, tuple(variable.shape)))


def cross_entropy(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
