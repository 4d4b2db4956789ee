# SPDX-License-Identifier: Apache-2.0
"""A translator: LSTM encoder, LSTM decoder, dot-product attention on the encoder's outputs."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .layers import Scope, cross_entropy, embed, linear

State = tuple[jax.Array, jax.Array]


def run_lstm(scope: Scope, name: str, x: jax.Array, state: State | None) -> tuple[jax.Array, State]:
    """Outputs (batch, length, width) and the final state. The gates are input, forget, cell and output."""
    count, _, width = x.shape
    input_kernel = scope.get(f"{name}.input_kernel", (width, 4 * width))
    state_kernel = scope.get(f"{name}.state_kernel", (width, 4 * width))

    def advance(state: State, input_gate_products: jax.Array) -> tuple[State, jax.Array]:
        hidden_state, cell = state
        enter, forget, change, leave = jnp.split(input_gate_products + hidden_state @ state_kernel, 4, axis=-1)
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(enter) * jnp.tanh(change)
        hidden_state = jax.nn.sigmoid(leave) * jnp.tanh(cell)
        return (hidden_state, cell), hidden_state

    state = state or (jnp.zeros((count, width)), jnp.zeros((count, width)))
    state, outputs = jax.lax.scan(advance, state, (x @ input_kernel).swapaxes(0, 1))
    return outputs.swapaxes(0, 1), state


def encode(scope: Scope, sources: jax.Array, settings: dict) -> tuple[jax.Array, list[State]]:
    """Outputs of the last layer, and the final state of each layer."""
    x, states = embed(scope, "source_embedding", sources, settings["vocabulary"], settings["width"]), []
    for number in range(settings["layers"]):
        x, state = run_lstm(scope, f"encoder.{number}", x, None)
        states.append(state)
    return x, states


def decode(
    scope: Scope, tokens: jax.Array, states: list[State], encoded: jax.Array, settings: dict
) -> tuple[jax.Array, list[State]]:
    """Logits of the next tokens, and the state of each layer."""
    x, new_states = embed(scope, "target_embedding", tokens, settings["vocabulary"], settings["width"]), []
    for number, state in enumerate(states):
        x, state = run_lstm(scope, f"decoder.{number}", x, state)
        new_states.append(state)
    weights = jax.nn.softmax(x @ encoded.swapaxes(1, 2))
    x = jnp.tanh(linear(scope, "combination", jnp.concatenate([weights @ encoded, x], axis=-1), settings["width"]))
    return linear(scope, "output", x, settings["vocabulary"]), new_states


def compute_loss(scope: Scope, batch: dict, settings: dict) -> jax.Array:
    encoded, states = encode(scope, batch["sources"], settings)
    logits, _ = decode(scope, batch["inputs"], states, encoded, settings)
    return cross_entropy(logits, batch["targets"]).mean()


def predict(scope: Scope, batch: dict, settings: dict) -> dict:
    """Greedy decoding, token by token."""
    encoded, states = encode(scope, batch["sources"], settings)

    def advance(carried: tuple, _: None) -> tuple[tuple, jax.Array]:
        token, states = carried
        logits, states = decode(scope, token, states, encoded, settings)
        token = logits.argmax(axis=-1).astype(token.dtype)
        return (token, states), token[:, 0]

    start_tokens = jnp.zeros_like(batch["sources"][:, :1])
    _, tokens = jax.lax.scan(advance, (start_tokens, states), length=settings["length"])
    return {"tokens": tokens.T}
