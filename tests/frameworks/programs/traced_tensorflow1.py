# SPDX-License-Identifier: Apache-2.0
"""Trains a small TensorFlow 1 graph, writes the trace of one step: traced_tensorflow1.py TIMELINE.json METADATA.pb."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from tensorflow.python.client import timeline  # noqa: E402

tf.disable_eager_execution()


def dense(x, width, name):
    with tf.variable_scope(name):
        weights = tf.get_variable("kernel", [int(x.shape[1]), width])
        return tf.nn.relu(tf.nn.bias_add(tf.matmul(x, weights), tf.get_variable("bias", [width])))


x, y = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int32, [None])
with tf.variable_scope("net"):
    logits = dense(dense(x, 512, "first"), 10, "second")
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits), name="loss")
train = tf.train.AdamOptimizer(1e-3).minimize(loss)
random = np.random.default_rng(7)
feed = {x: random.random((256, 64), dtype="float32"), y: random.integers(0, 10, 256)}
metadata = tf.RunMetadata()
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(train, feed)
    full_trace_options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    session.run([train, loss], feed, options=full_trace_options, run_metadata=metadata)
with open(sys.argv[1], "w") as file:
    file.write(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format())
with open(sys.argv[2], "wb") as file:
    file.write(metadata.SerializeToString())
