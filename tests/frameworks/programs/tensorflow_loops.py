# SPDX-License-Identifier: Apache-2.0
"""Trains a small network in a loop of the program: tensorflow_loops.py function|nested|jit|keras|eager|annotated.

function: a tf.function with a GradientTape; nested: it calls another tf.function; jit: compiled by XLA; keras: Keras
layers and optimizer in a tf.function; eager: without any tf.function; annotated: with tf.profiler's step annotations.
The last line contains the exact losses of all steps."""

import contextlib
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

STEPS = 40
PROGRAM_KIND = sys.argv[1]


class Dense(tf.Module):
    def __init__(self, inputs, outputs, name):
        super().__init__(name=name)
        self.kernel = tf.Variable(0.05 * tf.random.stateless_normal([inputs, outputs], [1, 2]), name="kernel")
        self.bias = tf.Variable(tf.zeros([outputs]), name="bias")

    @tf.Module.with_name_scope
    def __call__(self, x):
        return tf.matmul(x, self.kernel) + self.bias


class Net(tf.Module):
    def __init__(self):
        super().__init__(name="net")
        with self.name_scope:
            self.first, self.second = Dense(256, 512, "first"), Dense(512, 10, "second")

    @tf.Module.with_name_scope
    def __call__(self, x):
        return self.second(tf.nn.relu(self.first(x)))


def update(variables, gradients):
    with tf.name_scope("sgd"):
        for variable, gradient in zip(variables, gradients):
            variable.assign_sub(0.1 * gradient)


def plain_network():
    net = Net()
    return net, lambda: net.trainable_variables, update


def keras_network():
    import keras

    keras.utils.set_random_seed(7)
    layers = [keras.layers.Dense(512, activation="relu", name="first"), keras.layers.Dense(10, name="second")]
    net = keras.Sequential([keras.Input((256,)), *layers])
    optimizer = keras.optimizers.SGD(0.1)
    return (
        net,
        lambda: net.trainable_variables,
        lambda variables, gradients: optimizer.apply_gradients(zip(gradients, variables)),
    )


net, list_variables, apply = keras_network() if PROGRAM_KIND in ("keras", "eager") else plain_network()
forward = tf.function(lambda x: net(x)) if PROGRAM_KIND == "nested" else net


def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = forward(x)
        with tf.name_scope("loss"):
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    variables = list_variables()
    apply(variables, tape.gradient(loss, variables))
    return loss


if PROGRAM_KIND != "eager":
    train_step = tf.function(train_step, jit_compile=PROGRAM_KIND == "jit")
random = np.random.default_rng(7)
x, y = tf.constant(random.random((512, 256), dtype="float32")), tf.constant(random.integers(0, 10, 512))
losses = []
for step in range(STEPS):
    is_annotated = PROGRAM_KIND == "annotated"
    with tf.profiler.experimental.Trace("train", step_num=step) if is_annotated else contextlib.nullcontext():
        losses.append(float(train_step(x, y)))
print(" ".join(loss.hex() for loss in losses))
