# SPDX-License-Identifier: Apache-2.0
"""Trains a network and runs its inference in TensorFlow, in graphs of tf.function."""

from __future__ import annotations

import importlib
import os

import numpy as np

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import tensorflow as tf

from .layers import set_initial_values

BETAS = (0.9, 0.999)
EPSILON = 1e-10  # so small that its place in the formula, which differs between frameworks, does not matter


class Trainer:
    def __init__(self, network: str, settings: dict, device: str) -> None:
        self.device = "/GPU:0" if device == "cuda" else "/CPU:0"
        self.network = importlib.import_module(f"networks_tensorflow.{network}").Network(settings)
        self.optimizer = keras.optimizers.Adam(
            settings["learning_rate"], beta_1=BETAS[0], beta_2=BETAS[1], epsilon=EPSILON
        )
        self.graph_step = tf.function(self.compute_step, autograph=False)
        self.graph_output = tf.function(self.network.infer)
        self.is_built = False

    def put(self, batch: dict[str, np.ndarray]) -> dict[str, tf.Tensor]:
        with tf.device(self.device):
            return {name: tf.constant(array) for name, array in batch.items()}

    def build(self, batch: dict[str, tf.Tensor]) -> None:
        """Keras creates the variables in the first call."""
        self.network.infer(batch)
        set_initial_values(self.network)
        self.optimizer.build(self.network.trainable_variables)
        self.is_built = True

    def compute_step(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = self.network.compute_training_loss(batch)
        variables = self.network.trainable_variables
        # Adam of Keras updates from sparse gradients differently. PyTorch and JAX have dense ones.
        gradients = [tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, variables)]
        self.optimizer.apply_gradients(zip(gradients, variables))
        return loss

    def train_step(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        """The loss before the update, still on the device."""
        if not self.is_built:
            self.build(batch)
        return self.graph_step(batch)

    def predict(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return self.graph_output(batch)

    def fetch(self, values: dict | list | tf.Tensor) -> dict | list | np.ndarray:
        """Values as NumPy arrays; waits for the device."""
        return tf.nest.map_structure(lambda tensor: tensor.numpy(), values)

    def count_parameters(self) -> int:
        return sum(int(np.prod(variable.shape)) for variable in self.network.trainable_variables)
