#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs networks as a whole and layer by layer. additivity.py starts it under `joulemap record --trace off`.

A window of "layers" runs every leaf module alone, in a loop, on the input that it had in the network. Each module
gets as many calls as in K passes of the network. The counter's energy of the window is therefore K times the sum of
layers measured alone. This works for layers of any duration, and no timestamps inside the window are needed.
"blocks" is the same with residual blocks kept whole; "layers waited for" synchronizes after every call. The windows
run in random order.
"""

from __future__ import annotations

import random
import sys
import time
from typing import Callable, NamedTuple

import torch
from additivity import BLOCKS_VARIANT, LAYERS_VARIANT, SYNCHRONIZED_VARIANT, WHOLE_VARIANT
from study_load import Device, LoadLog, remaining_s, make_load_parser, print_progress
from torch import nn

BLOCK_TYPES = {"BasicBlock", "Bottleneck"}
IDLE_REST_S = 0.4
# (network, batch size), most important first: the time limit may end the run before the list does.
NETWORK_PLAN = [
    ("resnet18", 1), ("resnet50", 32), ("mlp-small", 1), ("vgg11", 1), ("mlp-large", 32), ("resnet50", 1), ("resnet18", 32),
    ("convnet", 1), ("vgg11", 32), ("resnet50", 128), ("resnet101", 1), ("mlp-small", 128), ("convnet", 128),
    ("resnet34", 8), ("resnet18", 128), ("resnet101", 32), ("resnet50", 8), ("mlp-large", 1),
    ("vgg11", 128), ("resnet34", 1), ("vgg11", 8),
]  # fmt: skip
TINY_NETWORK_PLAN = [("mlp-small", 1), ("convnet", 8)]


def mlp(width: int, depth: int) -> tuple[nn.Module, tuple]:
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*layers), (width,)


def convnet() -> tuple[nn.Module, tuple]:
    widths, layers = [3, 32, 64, 128], []
    for input_channels, output_channels in zip(widths, widths[1:]):
        layers += [
            nn.Conv2d(input_channels, output_channels, 3, padding=1),
            nn.BatchNorm2d(output_channels),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
        ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)), (3, 32, 32)


def make(name: str, batch: int, device: str) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    with torch.device(device):  # initializing weights on the GPU is fast
        if name.startswith("mlp"):
            model, shape = mlp(512, 4) if name == "mlp-small" else mlp(4096, 8)
        elif name == "convnet":
            model, shape = convnet()
        else:
            import torchvision

            model, shape = getattr(torchvision.models, name)(), (3, 224, 224)
    return model.eval(), torch.randn(batch, *shape, device=device)


class MeasuredModule(NamedTuple):
    """A module with the input of one of its calls. `count`: number of equal calls in a pass."""

    call: Callable[[], object]
    count: int


def is_leaf(module: nn.Module) -> bool:
    return next(module.children(), None) is None


def is_block(module: nn.Module) -> bool:
    return type(module).__name__ in BLOCK_TYPES


def group_module_calls(model: nn.Module, x: torch.Tensor, whole_blocks: bool) -> list[MeasuredModule]:
    """Groups the calls of a pass: equal modules with inputs of equal shapes form one part."""
    inner_modules = {
        submodule
        for block in model.modules()
        if whole_blocks and is_block(block)
        for submodule in block.modules()
        if submodule is not block
    }
    measured_modules = [
        submodule
        for submodule in model.modules()
        if submodule not in inner_modules and (is_leaf(submodule) or (whole_blocks and is_block(submodule)))
    ]
    call_groups: dict[str, list] = {}

    def keep(module: nn.Module, inputs: tuple) -> None:
        key = f"{module} {[(tuple(input_tensor.shape), input_tensor.stride()) for input_tensor in inputs]}"
        call_group = call_groups.setdefault(key, [module, None, 0])
        call_group[2] += 1
        if call_group[1] is None:
            call_group[1] = tuple(input_tensor.clone(memory_format=torch.preserve_format) for input_tensor in inputs)

    hooks = [module.register_forward_pre_hook(keep) for module in measured_modules]
    model(x)
    for hook in hooks:
        hook.remove()
    return [
        MeasuredModule(lambda module=module, inputs=inputs: module(*inputs), count)
        for module, inputs, count in call_groups.values()
    ]


def count_multiplications(model: nn.Module, x: torch.Tensor) -> int:
    total = 0

    def add(module: nn.Module, _inputs: tuple, output: torch.Tensor) -> None:
        nonlocal total
        total += output.numel() * module.weight.numel() // module.weight.shape[0]

    kinds = (nn.Conv2d, nn.Linear)
    hooks = [module.register_forward_hook(add) for module in model.modules() if isinstance(module, kinds)]
    model(x)
    for hook in hooks:
        hook.remove()
    return total


class VariantWindows:
    def __init__(self, device: Device, name: str, batch: int) -> None:
        self.device = device
        model, x = make(name, batch, device.name)
        layers = group_module_calls(model, x, whole_blocks=False)
        self.variants = {
            WHOLE_VARIANT: ([MeasuredModule(lambda: model(x), 1)], False),
            LAYERS_VARIANT: (layers, False),
            SYNCHRONIZED_VARIANT: (layers, True),
        }
        if any(is_block(module) for module in model.modules()):
            self.variants[BLOCKS_VARIANT] = (group_module_calls(model, x, whole_blocks=True), False)
        self.facts = {"network": name, "batch": batch, "parameters": sum(p.numel() for p in model.parameters()),
                      "multiplications": count_multiplications(model, x), "calls": sum(part.count for part in layers),
                      "distinct": len(layers)}  # fmt: skip
        self._pass_s = {variant: self._measure_pass_s(variant) for variant in self.variants}

    def _run_window(self, variant: str, passes: int) -> dict:
        parts, waits = self.variants[variant]
        begin_ns = time.monotonic_ns()
        for part in parts:
            for _ in range(part.count * passes):
                part.call()
                if waits:
                    self.device.wait()
        self.device.wait()
        return {"begin_ns": begin_ns, "end_ns": time.monotonic_ns(), "passes": passes}

    def _measure_pass_s(self, variant: str) -> float:
        self._run_window(variant, 2)
        passes, length_s = 2, 0.0
        while length_s < 0.06 and passes < 4096:
            passes *= 2
            span = self._run_window(variant, passes)
            length_s = (span["end_ns"] - span["begin_ns"]) * 1e-9
        return length_s / passes

    def window(self, variant: str, seconds: float) -> dict:
        return self._run_window(variant, max(1, round(seconds / self._pass_s[variant])))


def run_network_windows(load_log: LoadLog, device: Device, name: str, batch: int, options) -> None:
    windows, chance = VariantWindows(device, name, batch), random.Random(f"{options.seed} {name} {batch}")
    # The cost of synchronization varies little: one window of it is enough.
    round_variants = [(number, variant) for number in range(options.rounds) for variant in windows.variants
             if variant != SYNCHRONIZED_VARIANT or number == 0]  # fmt: skip
    round_variants.sort(key=lambda round_variant: (round_variant[0], chance.random()))
    window_entries = [
        {"variant": variant, "round": number, **windows.window(variant, options.window_s)}
        for number, variant in round_variants
    ]
    rest_span = device.rest(IDLE_REST_S)
    load_log.add(**windows.facts, windows=window_entries, rest=rest_span)
    print_progress(
        f"{name}, batch {batch}: "
        + ", ".join(f"{pass_variant} {1e3 * s:.3f} ms" for pass_variant, s in windows._pass_s.items())
    )


def main() -> int:
    parser = make_load_parser(__doc__)
    parser.add_argument("--window-s", type=float, default=0.45)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    device = Device(torch, options.device)
    load_log = LoadLog(options.out, options.device, window_s=options.window_s, seed=options.seed)
    with torch.inference_mode():
        for name, batch in TINY_NETWORK_PLAN if options.tiny else NETWORK_PLAN:
            longest_s = (3 * options.rounds + 1) * options.window_s + IDLE_REST_S + 1.5
            if remaining_s(options) < longest_s:
                print_progress("out of time")
                break
            try:
                run_network_windows(load_log, device, name, batch, options)
            except Exception:  # noqa: BLE001 - a network that fails must not stop the others
                load_log.log_exception(f"{name}, batch {batch}")
            device.free_memory()
    return 1 if load_log.document["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
