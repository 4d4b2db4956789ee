# SPDX-License-Identifier: Apache-2.0
"""Trains a small network with JAX and flax under JAX's own profiler, five steps: traced_jax.py FOLDER."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(16, (3, 3))(x).mean((1, 2))
        return nn.Dense(10, name="head")(nn.relu(nn.Dense(256, name="hidden")(x)))


net = Net()
random = np.random.default_rng(7)
images, class_labels = (
    jnp.asarray(random.random((128, 16, 16, 3), dtype="float32")),
    jnp.asarray(random.integers(0, 10, 128)),
)
parameters = net.init(jax.random.PRNGKey(7), images)


@jax.jit
def train_step(parameters):
    def compute_loss(parameters):
        logits = jax.nn.log_softmax(net.apply(parameters, images))
        return -jnp.mean(jnp.take_along_axis(logits, class_labels[:, None], axis=1))

    gradients = jax.grad(compute_loss)(parameters)
    with jax.named_scope("sgd"):
        return jax.tree.map(lambda value, gradient: value - 0.01 * gradient, parameters, gradients)


parameters = jax.block_until_ready(train_step(parameters))
with jax.profiler.trace(sys.argv[1]):
    for number in range(5):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            parameters = jax.block_until_ready(train_step(parameters))
