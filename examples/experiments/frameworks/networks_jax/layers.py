# SPDX-License-Identifier: Apache-2.0
"""Layers as functions of a scope, which holds the parameters by name."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from initial_weights import make_initial_value

NORM_EPSILON = 1e-5
NORM_MOMENTUM = 0.9
LAYOUT = ("NHWC", "HWIO", "NHWC")


class Scope:
    """Parameters and batch-norm statistics of a network. A trace outside of jit creates the missing ones."""

    def __init__(self, parameters: dict, statistics: dict, is_training: bool) -> None:
        self.parameters = parameters
        self.statistics = dict(statistics)
        self.is_training = is_training

    def get(self, name: str, shape: tuple[int, ...]) -> jax.Array:
        if name not in self.parameters:
            self.parameters[name] = make_initial_value(name, shape)
        return jnp.asarray(self.parameters[name])

    def get_statistic(self, name: str, value: float, width: int) -> jax.Array:
        return self.statistics.setdefault(name, np.full(width, value, dtype=np.float32))


def linear(scope: Scope, name: str, x: jax.Array, outputs: int, has_bias: bool = True) -> jax.Array:
    x = x @ scope.get(f"{name}.kernel", (x.shape[-1], outputs))
    return x + scope.get(f"{name}.bias", (outputs,)) if has_bias else x


def convolve(
    scope: Scope, name: str, x: jax.Array, outputs: int, size: int, stride: int = 1, has_bias: bool = True
) -> jax.Array:
    kernel = scope.get(f"{name}.kernel", (size, size, x.shape[-1], outputs))
    padding = [(size // 2, size // 2)] * 2
    x = lax.conv_general_dilated(x, kernel, (stride, stride), padding, dimension_numbers=LAYOUT)
    return x + scope.get(f"{name}.bias", (outputs,)) if has_bias else x


def normalize_batch(scope: Scope, name: str, x: jax.Array) -> jax.Array:
    width = x.shape[-1]
    scale, bias = scope.get(f"{name}.scale", (width,)), scope.get(f"{name}.bias", (width,))
    old_mean = scope.get_statistic(f"{name}.mean", 0, width)
    old_variance = scope.get_statistic(f"{name}.variance", 1, width)
    if not scope.is_training:
        return (x - old_mean) * (lax.rsqrt(old_variance + NORM_EPSILON) * scale) + bias
    mean, variance = x.mean(axis=(0, 1, 2)), x.var(axis=(0, 1, 2))
    scope.statistics[f"{name}.mean"] = NORM_MOMENTUM * old_mean + (1 - NORM_MOMENTUM) * mean
    scope.statistics[f"{name}.variance"] = NORM_MOMENTUM * old_variance + (1 - NORM_MOMENTUM) * variance
    return (x - mean) * (lax.rsqrt(variance + NORM_EPSILON) * scale) + bias


def convolve_and_normalize(
    scope: Scope, name: str, x: jax.Array, outputs: int, size: int, stride: int = 1, has_relu: bool = True
) -> jax.Array:
    x = convolve(scope, f"{name}.conv", x, outputs, size, stride, has_bias=False)
    x = normalize_batch(scope, f"{name}.norm", x)
    return jax.nn.relu(x) if has_relu else x


def normalize_layer(scope: Scope, name: str, x: jax.Array) -> jax.Array:
    width = x.shape[-1]
    x = (x - x.mean(axis=-1, keepdims=True)) * lax.rsqrt(x.var(axis=-1, keepdims=True) + NORM_EPSILON)
    return x * scope.get(f"{name}.scale", (width,)) + scope.get(f"{name}.bias", (width,))


def embed(scope: Scope, name: str, indices: jax.Array, rows: int, width: int) -> jax.Array:
    return scope.get(f"{name}.table", (rows, width))[indices]


def pool_maximum(x: jax.Array) -> jax.Array:
    """3 x 3 with stride 2."""
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), [(0, 0), (1, 1), (1, 1), (0, 0)])


def upsample(x: jax.Array) -> jax.Array:
    """Each pixel becomes 2 x 2."""
    return x.repeat(2, axis=1).repeat(2, axis=2)


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)[..., 0]


def binary_cross_entropy(logits: jax.Array, targets: jax.Array) -> jax.Array:
    return jnp.maximum(logits, 0) - logits * targets + jnp.log1p(jnp.exp(-jnp.abs(logits)))
