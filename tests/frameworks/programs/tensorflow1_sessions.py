# SPDX-License-Identifier: Apache-2.0
"""Trains and evaluates a small TensorFlow 1 graph in a session. The last line contains the exact losses of all steps."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

tf.disable_eager_execution()
tf.set_random_seed(7)


def dense(x, width, name):
    with tf.variable_scope(name):
        weights = tf.get_variable("kernel", [int(x.shape[1]), width])
        return tf.nn.relu(tf.nn.bias_add(tf.matmul(x, weights), tf.get_variable("bias", [width])))


x, y = tf.placeholder(tf.float32, [None, 256]), tf.placeholder(tf.int32, [None])
with tf.variable_scope("net"):
    logits = dense(dense(x, 512, "first"), 10, "second")
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits), name="loss")
train = tf.train.AdamOptimizer(1e-3).minimize(loss)
random = np.random.default_rng(7)
feed = {x: random.random((512, 256), dtype="float32"), y: random.integers(0, 10, 512)}
losses = []
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(40):
        losses.append(session.run([train, loss], feed)[1])
    for _ in range(8):
        session.run(logits, feed)
print(" ".join(float(value).hex() for value in losses))
