# SPDX-License-Identifier: Apache-2.0
"""Trains a small network with JAX and flax, one block of it rematerialised, and runs inference.
The last line contains the exact losses."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x + nn.Dense(128)(nn.gelu(nn.Dense(512)(nn.LayerNorm()(x))))


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(128)(nn.Conv(16, (3, 3))(x).mean((1, 2)))
        x = nn.remat(Block)(name="block_1")(Block(name="block_0")(x))
        return nn.Dense(10)(x)


net = Net()
random = np.random.default_rng(7)
images = jnp.asarray(random.random((256, 16, 16, 3), dtype="float32"))
class_labels = jnp.asarray(random.integers(0, 10, 256))
parameters = net.init(jax.random.PRNGKey(7), images)


@jax.jit
def train_step(parameters, images, labels):
    def compute_loss(parameters):
        logits = net.apply(parameters, images)
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1))

    loss, gradients = jax.value_and_grad(compute_loss)(parameters)
    with jax.named_scope("sgd"):
        parameters = jax.tree.map(lambda value, gradient: value - 0.01 * gradient, parameters, gradients)
    return parameters, loss


@jax.jit
def predict(parameters, images):
    return net.apply(parameters, images)


losses = []
for _ in range(40):
    parameters, loss = train_step(parameters, images, class_labels)
    losses.append(loss)
for _ in range(10):
    predict(parameters, images).block_until_ready()
print(" ".join(float(loss).hex() for loss in losses[::8]))
