# SPDX-License-Identifier: Apache-2.0
"""Trains a small network with Keras on TensorFlow: keras_networks.py mlp|convnet|transformer [--jit] [--evaluate].
The last line contains the exact losses of all epochs."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers  # noqa: E402


def mlp():
    stack = [keras.Input((64,)), layers.Dense(256, activation="relu"), layers.BatchNormalization(), layers.Dropout(0.2)]
    return keras.Sequential(stack + [layers.Dense(256, activation="relu"), layers.Dense(10)])


def convnet():
    first_block = [
        layers.Conv2D(16, 3, padding="same"),
        layers.BatchNormalization(),
        layers.ReLU(),
        layers.MaxPooling2D(),
    ]
    second_block = [layers.Conv2D(32, 3, padding="same", activation="relu"), layers.BatchNormalization()]
    head = [layers.GlobalAveragePooling2D(), layers.Dropout(0.3), layers.Dense(10)]
    return keras.Sequential([keras.Input((24, 24, 3))] + first_block + second_block + head)


def transformer():
    input_tensor = keras.Input((32, 64))
    normal = layers.LayerNormalization()(input_tensor)
    x = layers.Add()([input_tensor, layers.MultiHeadAttention(4, 16, dropout=0.1)(normal, normal)])
    hidden_tensor = layers.Dense(256, activation="gelu")(layers.LayerNormalization()(x))
    x = layers.Add()([x, layers.Dense(64)(layers.Dropout(0.1)(hidden_tensor))])
    x = layers.GlobalAveragePooling1D()(layers.BatchNormalization()(x))
    return keras.Model(input_tensor, layers.Dense(10)(x), name="block")


def main(name, *flags):
    keras.utils.set_random_seed(7)
    model = {"mlp": mlp, "convnet": convnet, "transformer": transformer}[name]()
    random = np.random.default_rng(7)
    x = random.random((1280, *model.input_shape[1:]), dtype="float32")
    y = random.integers(0, 10, len(x))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"], jit_compile="--jit" in flags)
    history = model.fit(x, y, batch_size=64, epochs=3, verbose=0)
    if "--evaluate" in flags:
        model.evaluate(x, y, batch_size=64, verbose=0)
    print(" ".join(loss.hex() for loss in history.history["loss"]))


main(*sys.argv[1:])
