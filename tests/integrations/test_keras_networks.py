# SPDX-License-Identifier: Apache-2.0
"""`joulemap predict` reads every network of keras.applications as model.to_json(), without unknown operations."""

from __future__ import annotations

import inspect

import keras
import pytest
from keras.src.applications import nasnet

NETWORKS = sorted(name for name, _ in inspect.getmembers(keras.applications, inspect.isfunction))


class AnyBackend:
    """NASNet refuses construction with the PyTorch backend, which cannot run it. Its description is still valid."""

    def __getattr__(self, name: str):
        return getattr(keras.src.backend, name)

    def backend(self) -> str:
        return "any"


def weighted_layer_names(model: keras.Model, path: str = "") -> set[str]:
    """Names of layers with weights; layers of nested models have the path of the model as prefix."""
    names = set()
    for layer in model.layers:
        if isinstance(layer, keras.Model):
            names |= weighted_layer_names(layer, f"{path}{layer.name}.")
        elif layer.trainable_weights:
            names.add(path + layer.name)
    return names


@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_in_a_network_of_keras_is_unknown(name, joulemap, tmp_path, monkeypatch):
    monkeypatch.setattr(nasnet, "backend", AnyBackend())
    model = getattr(keras.applications, name)(weights=None)
    file = tmp_path / f"{name}.json"
    file.write_text(model.to_json())
    sizes = ["--input", "1x224x224x3"] if None in model.input_shape[1:] else []
    outcome = joulemap("predict", file, "--json", *sizes)
    assert outcome.code == 0, outcome.err
    prediction = outcome.json
    assert prediction["unknown_ops"] == []
    assert weighted_layer_names(model) <= {layer["name"] for layer in prediction["layers"]}
