#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes python/joulemap/_collect/real_layers.csv: the distinct layers of real networks, from torchvision, timm and
transformers.

Networks run once on tensors without data (the meta device), one image or one text at a time. Every operation that
reaches the dispatcher and is a kind of the collector becomes a line. Families that evaluate predictions are excluded.
"""

from __future__ import annotations

import csv
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python" / "joulemap"))

import torch  # noqa: E402
from _collect import design, networks, real_layers  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

ACTIVATIONS = {"relu": "relu", "relu_": "relu", "gelu": "gelu", "silu": "silu", "silu_": "silu", "sigmoid": "sigmoid"}
ACTIVATIONS |= {"hardswish": "hardswish", "hardswish_": "hardswish", "hardtanh": "relu6", "hardtanh_": "relu6"}
ACTIVATIONS |= {"tanh": "tanh", "_softmax": "softmax", "leaky_relu": "leaky_relu", "leaky_relu_": "leaky_relu"}


def shape_to_batch_rows_width(shape) -> dict:
    """Returns any tensor shape as (batch, rows, width)."""
    sizes = list(shape)
    if len(sizes) == 4:
        return {"batch": sizes[0], "rows": sizes[1], "width": sizes[2] * sizes[3]}
    if len(sizes) == 3:
        return {"batch": sizes[0], "rows": sizes[1], "width": sizes[2]}
    return {"batch": 1, "rows": 1, "width": max(1, torch.Size(sizes).numel())}


def convert_convolution_call(x, weight, bias, stride, padding, dilation, is_transposed, _, groups):
    square = len(x.shape) == 4 and weight.shape[2] == weight.shape[3] and len(set(stride)) == len(set(padding)) == 1
    if is_transposed or not square:
        return None
    batch, channels, height, width = x.shape
    parameters = {"batch": batch, "channels": channels, "out": weight.shape[0], "height": height, "width": width}
    parameters |= {"kernel": weight.shape[2], "stride": stride[0], "padding": padding[0], "dilation": dilation[0]}
    return "convolution", {**parameters, "groups": groups, "bias": bias is not None, "channels_last": False}


def convert_dense_call(rows, in_features, out, bias):
    return "dense", {"rows": rows, "in": in_features, "out": out, "bias": bias}


def convert_pooling_call(form, x, kernel, stride, padding=(0, 0), *_):
    if len(x.shape) != 4 or len(set(kernel)) != 1:
        return None
    batch, channels, height, width = x.shape
    parameters = {"form": form, "batch": batch, "channels": channels, "height": height, "width": width}
    stride = stride or kernel
    return "pooling", {**parameters, "kernel": kernel[0], "stride": stride[0], "padding": padding[0] if padding else 0}


def convert_normalization_call(form, x, channels):
    if form == "layer":
        return "normalization", {
            "form": form,
            "batch": x.numel() // channels,
            "channels": channels,
            "height": 1,
            "width": 1,
        }
    if len(x.shape) != 4:
        return None
    batch, channels, height, width = x.shape
    return "normalization", {"form": form, "batch": batch, "channels": channels, "height": height, "width": width}


def convert_two_operand_call(kind, x, y):
    if not isinstance(y, torch.Tensor) or not isinstance(x, torch.Tensor) or len(x.shape) < 2 or not len(y.shape):
        return None
    form = "same" if x.shape == y.shape else "row" if y.shape[-1] == 1 else "last" if len(y.shape) == 1 else None
    return form and (kind, {"form": form, **shape_to_batch_rows_width(x.shape)})


def convert_attention_call(q, k):
    *several, heads, queries, width = q.shape
    parameters = {
        "batch": torch.Size(several).numel(),
        "heads": heads,
        "queries": queries,
        "keys": k.shape[-2],
        "width": width,
    }
    return "attention", {**parameters, "causal": False}


def convert_bmm_call(a, b):
    return "bmm", {"batch": a.shape[0], "m": a.shape[1], "k": a.shape[2], "n": b.shape[2], "transposed": False}


def convert_dispatched_call(name: str, args) -> tuple | None:
    """Returns the kind and its parameters, or None if the dispatcher's operation is none of the kinds."""
    if name in ACTIVATIONS:
        return "activation", {"form": ACTIVATIONS[name], **shape_to_batch_rows_width(args[0].shape)}
    converter = {
        "convolution": lambda: convert_convolution_call(*args[:9]),
        "addmm": lambda: convert_dense_call(args[1].shape[0], args[1].shape[1], args[2].shape[1], True),
        "mm": lambda: convert_dense_call(args[0].shape[0], args[0].shape[1], args[1].shape[1], False),
        "max_pool2d_with_indices": lambda: convert_pooling_call("max", *args),
        "avg_pool2d": lambda: convert_pooling_call("avg", *args[:4]),
        "native_layer_norm": lambda: convert_normalization_call("layer", args[0], args[1][-1]),
        "native_batch_norm": lambda: convert_normalization_call("batch", args[0], None),
        "add": lambda: convert_two_operand_call("add", *args[:2]),
        "add_": lambda: convert_two_operand_call("add", *args[:2]),
        "mul": lambda: convert_two_operand_call("multiply", *args[:2]),
        "bmm": lambda: convert_bmm_call(*args),
        "cat": lambda: ("concatenate", {**shape_to_batch_rows_width(args[0][0].shape), "parts": len(args[0])}),
        "embedding": lambda: (
            "embedding",
            {"vocabulary": args[0].shape[0], "width": args[0].shape[1], "tokens": args[1].numel()},
        ),
        "_scaled_dot_product_flash_attention_for_cpu": lambda: convert_attention_call(*args[:2]),
        "_scaled_dot_product_fused_attention_overrideable": lambda: convert_attention_call(*args[:2]),
        "_scaled_dot_product_attention_math": lambda: convert_attention_call(*args[:2]),
    }.get(name)
    return converter() if converter else None


class LayerListingMode(TorchDispatchMode):
    def __init__(self, family: str, family_by_layer: dict) -> None:
        super().__init__()
        self._network_family, self._found_layers = family, family_by_layer

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        layer = convert_dispatched_call(func.overloadpacket.__name__, args)
        if layer:
            self._found_layers.setdefault((layer[0], design.format_parameters(layer[1])), self._network_family)
        return func(*args, **(kwargs or {}))


def record_attention(q, k, v, *_, **__):
    """Represents attention as one operation, as on a GPU; without data PyTorch decomposes it."""
    RECORDED_ATTENTION_LAYERS.append(convert_attention_call(q, k))
    return torch.empty(*q.shape[:-1], v.shape[-1], device=q.device, dtype=q.dtype)


RECORDED_ATTENTION_LAYERS: list = []
LARGE_NETWORKS = {"llama-1b", "gpt2-medium", "opt-350m"}


def list_network_layers(network: networks.Network, device: str, family_by_layer: dict) -> bool:
    try:
        loaded_network = networks.LoadedNetwork(torch, device, network)
        for size in network.sizes[:2]:
            with LayerListingMode(network.family, family_by_layer):
                loaded_network.make_call(networks.NetworkSetting(network, 1, size, "fp32", "inference"))()
    except Exception as error:  # noqa: BLE001 a network that cannot run here has no layers here
        print(f"{network.name} on {device}: {str(error).splitlines()[0]}", file=sys.stderr)
        return False
    return True


def main() -> int:
    warnings.filterwarnings("ignore")
    torch.nn.functional.scaled_dot_product_attention = record_attention
    family_by_layer: dict = {}
    for network in networks.list_all_networks(held_out=False):
        # Some networks read their data; those run with data if they are small.
        if not list_network_layers(network, "meta", family_by_layer) and network.name not in LARGE_NETWORKS:
            list_network_layers(network, "cpu", family_by_layer)
        for kind, parameters in RECORDED_ATTENTION_LAYERS:
            family_by_layer.setdefault((kind, design.format_parameters(parameters)), network.family)
        RECORDED_ATTENTION_LAYERS.clear()
    with real_layers.REAL_LAYERS_FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kind", "family", "parameters"])
        writer.writerows(sorted((kind, family, text) for (kind, text), family in family_by_layer.items()))
    print(
        f"{len(family_by_layer)} layers of {len(set(family_by_layer.values()))} families "
        f"in {real_layers.REAL_LAYERS_FILE.name}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
