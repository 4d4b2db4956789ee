# SPDX-License-Identifier: Apache-2.0
"""Trains a small network with Keras under TensorFlow's own profiler: traced_keras.py FOLDER."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from keras import layers  # noqa: E402

stack = [keras.Input((24, 24, 3)), layers.Conv2D(16, 3), layers.ReLU(), layers.GlobalAveragePooling2D(), layers.Dense(10)]
model = keras.Sequential(stack)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
random = np.random.default_rng(7)
x, y = random.random((320, 24, 24, 3), dtype="float32"), random.integers(0, 10, 320)
model.fit(x, y, batch_size=64, epochs=1, verbose=0)
tf.profiler.experimental.start(sys.argv[1])
model.fit(x, y, batch_size=64, epochs=1, verbose=0)
tf.profiler.experimental.stop()
