# SPDX-License-Identifier: Apache-2.0
"""Whole networks with random weights: from torchvision, timm and transformers, recurrent ones, and MLPs.

Families are identified by name. The families that evaluate predictions (`HELD_OUT`) are measured only on request and
into a separate folder; no model is fitted to them.
"""

from __future__ import annotations

import contextlib
import importlib
import random
from typing import Any, Callable, Iterator, NamedTuple, Optional

from . import network_recurrent
from .design import DESIGN_SEED
from .kinds_optimizer import make_optimizer
from .network_list import HELD_OUT_FAMILIES, TEXT_NETWORKS, TIMM_NETWORKS, TORCHVISION_NETWORKS
from .network_texts import has_decoder, make_text_model
from .tensors import use_matmul_precision

CLASS_COUNT = 1000
MLP_SIZES = {
    f"mlp-{depth}x{width}": (depth, width) for depth, width in ((2, 512), (4, 1024), (8, 2048), (3, 4096), (6, 8192))
}
PRECISIONS_BY_PASS = {
    "inference": ("default", "fp16", "bf16", "tf32", "default", "amp-bf16", "fp32"),
    "training": ("default", "amp-bf16", "tf32", "default", "amp-bf16", "bf16", "fp32"),
}
NETWORK_PASSES = ("inference", "training")
# Values of Network.package for networks that this package defines; the other values are names of Python packages.
BUILT_IN_PACKAGES = ("mlp", "recurrent")
# Errors that skip a network. Packages raise them if their installed version lacks it.
LOAD_ERRORS = (RuntimeError, ValueError, TypeError, AttributeError, ImportError, KeyError)


class Network(NamedTuple):
    package: str
    name: str
    family: str
    sizes: tuple  # pixels of an image, tokens of a text


class NetworkSetting(NamedTuple):
    network: Network
    batch: int
    size: int
    dtype: str
    pass_name: str

    @property
    def parameters(self) -> dict:
        network = self.network
        return {"name": network.name, "package": network.package, "batch": self.batch, "size": self.size}

    @property
    def key(self) -> str:
        name = f"{self.network.package}/{self.network.name}"
        return f"network {name} {self.batch}x{self.size} {self.dtype} {self.pass_name}"


def list_all_networks(held_out: bool) -> list[Network]:
    networks = [Network("mlp", name, "mlp", (1024,)) for name in MLP_SIZES]
    for family, (name, _, _, sizes) in network_recurrent.RECURRENT_NETWORKS.items():
        networks.append(Network("recurrent", name, family, sizes))
    for package, names_by_family in (
        ("torchvision", TORCHVISION_NETWORKS),
        ("timm", TIMM_NETWORKS),
        ("transformers", TEXT_NETWORKS),
    ):
        networks += [
            Network(package, name, family, sizes)
            for family, (names, sizes) in names_by_family.items()
            for name in names.split()
        ]
    return [network for network in networks if (network.family in HELD_OUT_FAMILIES) == held_out]


def draw_settings(network: Network, count: int) -> Iterator[NetworkSetting]:
    """Yields up to `count` different combinations of batch, size, precision and pass for one network, in a fixed random
    order that alternates between inference and training."""
    rng = random.Random(f"{DESIGN_SEED} {network.name}")
    batch_sizes = (1, 8, 32, 64, 128) if network.package != "transformers" else (1, 4, 16, 32)
    precision_offset = rng.randrange(7)
    drawn_settings = set()
    for draw_index in range(count * 20):
        if len(drawn_settings) == count:
            return
        pass_name = NETWORK_PASSES[draw_index % 2]
        batch_size = rng.choice(batch_sizes[1:] if pass_name == "training" else batch_sizes)
        size = network.sizes[0] if rng.random() < 0.6 else rng.choice(network.sizes)
        dtype = PRECISIONS_BY_PASS[pass_name][(draw_index // 2 + precision_offset) % 7]
        setting = NetworkSetting(network, batch_size, size, dtype, pass_name)
        if setting not in drawn_settings:
            drawn_settings.add(setting)
            yield setting


def plan_networks(each: int = 8, held_out: bool = False, package: Optional[str] = None) -> list[list[NetworkSetting]]:
    """Returns settings by network, networks in random order: an inference and a training run of each, then two more
    of each."""
    networks = [candidate for candidate in list_all_networks(held_out) if package in (None, candidate.package)]
    random.Random(DESIGN_SEED).shuffle(networks)
    settings = [list(draw_settings(network, each)) for network in networks]
    return [
        settings_of_network[first_index : first_index + 2]
        for first_index in range(0, each, 2)
        for settings_of_network in settings
    ]


class LoadedNetwork(contextlib.AbstractContextManager):
    """One network on the device; `make_call` returns a callable for one of its settings."""

    def __init__(self, torch: Any, device: str, network: Network) -> None:
        self._torch, self._device, self._network = torch, device, network
        if network.package not in BUILT_IN_PACKAGES:
            importlib.import_module(
                network.package
            )  # before the device is set: modules imported here need no default device
        with torch.device(device):
            # XLNet allocates some of its parameters on the host regardless of the default device.
            self._model = NETWORK_MAKERS[network.package](torch, network).to(device)
        self._model_dtype: Optional[Any] = None

    def __exit__(self, *_) -> None:
        del self._model

    def make_call(
        self, setting: NetworkSetting, wrap_model: Callable[[Any], Any] = lambda model: model
    ) -> Callable[[], Any]:
        """Returns a callable for a setting. `wrap_model` converts the network, on its device and in its type, into what
        is called."""
        torch = self._torch
        model_dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(setting.dtype, torch.float32)
        if model_dtype != self._model_dtype:
            self._model.to(model_dtype)
            self._model_dtype = model_dtype
        call_inputs = make_setting_inputs(torch, self._device, setting, model_dtype)
        uses_autocast = setting.dtype == "amp-bf16"
        autocast_context = (
            torch.autocast(self._device, dtype=torch.bfloat16) if uses_autocast else contextlib.nullcontext()
        )
        if setting.pass_name == "inference":
            self._model.eval()
            model = wrap_model(self._model)
            return lambda: self._run_inference(model, call_inputs, autocast_context)
        self._model.train()
        for parameter in self._model.parameters():
            parameter.requires_grad_(True)
        optimizer = make_optimizer(
            torch, "adamw" if setting.network.package == "transformers" else "momentum", "default",
            list(self._model.parameters()),
        )  # fmt: skip
        model = wrap_model(self._model)
        return lambda: self._run_training_step(model, call_inputs, autocast_context, optimizer)

    def _run_inference(self, model: Any, call_inputs: dict, autocast_context: Any) -> Any:
        with self._torch.no_grad(), autocast_context:
            return model(*call_inputs["inputs"], **call_inputs["named"])

    def _run_training_step(self, model: Any, call_inputs: dict, autocast_context: Any, optimizer: Any) -> None:
        with autocast_context:
            output = find_logits(model(*call_inputs["inputs"], **call_inputs["named"]))
            loss = self._torch.nn.functional.cross_entropy(output.flatten(0, -2).float(), call_inputs["target"](output))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def find_logits(output: Any) -> Any:
    """Returns the logits from any output structure; googlenet and inception return them first, before auxiliary
    outputs."""
    for name in ("logits", "last_hidden_state"):
        if hasattr(output, name):
            return getattr(output, name)
    return output[0] if isinstance(output, (tuple, list)) else output


def make_setting_inputs(torch: Any, device: str, setting: NetworkSetting, model_dtype: Any) -> dict:
    def target(output: Any) -> Any:
        rows = output.numel() // output.shape[-1]
        if "made" not in cached_target or cached_target["made"].numel() != rows:
            cached_target["made"] = torch.randint(0, output.shape[-1], (rows,), device=device)
        return cached_target["made"]

    cached_target: dict = {}
    if setting.network.package == "transformers":
        tokens = torch.randint(5, 1000, (setting.batch, setting.size), device=device)
        decoder_inputs = {"decoder_input_ids": tokens} if has_decoder(setting.network.name) else {}
        return {"inputs": (), "named": {"input_ids": tokens, **decoder_inputs}, "target": target}
    if setting.network.package == "recurrent":
        recurrent_inputs = network_recurrent.make_recurrent_inputs(
            torch, device, setting.network.name, setting.batch, setting.size, model_dtype
        )
        return {"inputs": recurrent_inputs, "named": {}, "target": target}
    shape = (3, setting.size, setting.size) if setting.network.package != "mlp" else (setting.size,)
    return {
        "inputs": (torch.randn(setting.batch, *shape, device=device, dtype=model_dtype),),
        "named": {},
        "target": target,
    }


def make_torchvision_network(_: Any, network: Network) -> Any:
    import torchvision

    model_options = {"init_weights": False} if network.name in ("googlenet", "inception_v3") else {}
    return torchvision.models.get_model(network.name, weights=None, **model_options)


def make_timm_network(_: Any, network: Network) -> Any:
    import timm

    return timm.create_model(network.name, pretrained=False, num_classes=CLASS_COUNT)


def make_text_network(_: Any, network: Network) -> Any:
    return make_text_model(network.name)


def make_mlp(torch: Any, network: Network) -> Any:
    depth, width = MLP_SIZES[network.name]
    layers: list = [torch.nn.Linear(network.sizes[0], width), torch.nn.ReLU()]
    for _ in range(depth - 1):
        layers += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, CLASS_COUNT))


def make_recurrent(torch: Any, network: Network) -> Any:
    return network_recurrent.make_recurrent_network(torch, network.name)


NETWORK_MAKERS = {
    "torchvision": make_torchvision_network,
    "timm": make_timm_network,
    "transformers": make_text_network,
    "mlp": make_mlp,
}
NETWORK_MAKERS |= {"recurrent": make_recurrent}


def use_setting_precision(torch: Any, setting: NetworkSetting) -> Any:
    return use_matmul_precision(torch, setting.dtype)
