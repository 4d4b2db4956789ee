# SPDX-License-Identifier: Apache-2.0
"""Trains a network and runs its inference in JAX, compiled by jax.jit."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

# Later processes load the compiled programs, as torch.compile does by default.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path.home() / ".cache" / "joulemap-experiments" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

import jax
import jax.numpy as jnp
import numpy as np

from .layers import Scope

BETAS = (0.9, 0.999)
EPSILON = 1e-10  # so small that its place in the formula, which differs between frameworks, does not matter


def update_with_adam(state: dict, gradients: dict, learning_rate: float) -> dict:
    """Parameters and moments after a step of Adam."""
    step = state["step"] + 1
    first_correction, second_correction = (1 - beta ** step.astype(jnp.float32) for beta in BETAS)
    first_moments = jax.tree.map(
        lambda first_moment, g: BETAS[0] * first_moment + (1 - BETAS[0]) * g, state["first"], gradients
    )
    second_moments = jax.tree.map(
        lambda second_moment, g: BETAS[1] * second_moment + (1 - BETAS[1]) * g * g, state["second"], gradients
    )

    def update(parameter: jax.Array, first_moment: jax.Array, second_moment: jax.Array) -> jax.Array:
        return parameter - learning_rate * (first_moment / first_correction) / (
            jnp.sqrt(second_moment / second_correction) + EPSILON
        )

    parameters = jax.tree.map(update, state["parameters"], first_moments, second_moments)
    return {"parameters": parameters, "first": first_moments, "second": second_moments, "step": step}


class Trainer:
    def __init__(self, network: str, settings: dict, device: str) -> None:
        if device == "cuda":
            jax.config.update("jax_default_matmul_precision", "tensorfloat32")
        self.device = jax.devices(device)[0]
        self.module = importlib.import_module(f"networks_jax.{network}")
        self.settings = settings
        self.state: dict = {}
        self.jit_step = jax.jit(self.compute_step, donate_argnums=0)
        self.jit_predict = jax.jit(self.compute_output)

    def put(self, batch: dict[str, np.ndarray]) -> dict[str, jax.Array]:
        return jax.device_put(batch, self.device)

    def create_state(self, batch: dict[str, jax.Array]) -> None:
        """A trace without computation finds the parameters and their shapes."""
        scope = Scope({}, {}, is_training=False)
        jax.eval_shape(lambda traced_batch: self.module.predict(scope, traced_batch, self.settings), batch)
        parameters = jax.device_put(scope.parameters, self.device)
        first_moments, second_moments = (jax.tree.map(jnp.zeros_like, parameters) for _ in range(2))
        self.state = {"parameters": parameters, "first": first_moments, "second": second_moments, "step": jnp.array(0)}
        self.state["statistics"] = jax.device_put(scope.statistics, self.device)

    def compute_step(self, state: dict, batch: dict) -> tuple[dict, jax.Array]:
        def compute_loss(parameters: dict) -> tuple[jax.Array, dict]:
            scope = Scope(parameters, state["statistics"], is_training=True)
            return self.module.compute_loss(scope, batch, self.settings), scope.statistics

        (loss, statistics), gradients = jax.value_and_grad(compute_loss, has_aux=True)(state["parameters"])
        new_state = update_with_adam(state, gradients, self.settings["learning_rate"])
        return {**new_state, "statistics": statistics}, loss

    def compute_output(self, state: dict, batch: dict) -> dict:
        scope = Scope(state["parameters"], state["statistics"], is_training=False)
        return self.module.predict(scope, batch, self.settings)

    def train_step(self, batch: dict[str, jax.Array]) -> jax.Array:
        """The loss before the update, still on the device."""
        if not self.state:
            self.create_state(batch)
        self.state, loss = self.jit_step(self.state, batch)
        return loss

    def predict(self, batch: dict[str, jax.Array]) -> dict[str, jax.Array]:
        return self.jit_predict(self.state, batch)

    def fetch(self, values: dict | list | jax.Array) -> dict | list | np.ndarray:
        """Values as NumPy arrays; waits for the device."""
        return jax.tree.map(np.asarray, values)

    def count_parameters(self) -> int:
        return sum(parameter.size for parameter in self.state["parameters"].values())
