# SPDX-License-Identifier: Apache-2.0
"""Measures networks under torch.compile, each next to its eager run, to quantify what compilation saves.

Every setting has two rows of kind `compiled` in the same slice, one with way `eager` and one with way `compiled`.
Compiling takes longer than measuring and needs one core. So all settings are first compiled in parallel, each group
in its own process, to fill the compiler's cache. Afterwards one process measures on an otherwise idle machine.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional, Sequence

from . import design, networks
from .session import CollectorRun, first_error_line

COMPILE_BACKEND = "inductor"  # default backend of torch.compile
EXECUTION_MODES = ("eager", "compiled")
# Share of the available time spent on filling the compiler's cache.
COMPILER_CACHE_FILL_FRACTION = 0.6
# Calls before a setting counts as compiled: the first compiles the forward and backward passes, the second behaves like
# all later ones.
CALLS_UNTIL_COMPILED = 2
CACHE_FILL_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from _collect import compiled;"
    "compiled.fill_compiler_cache(sys.argv[2], int(sys.argv[3]))"
)


class CompiledNetwork(NamedTuple):
    package: str
    name: str
    relative_compile_cost: float  # relative cost of compiling a forward pass; cheap ones come first
    dtype: str
    batches: tuple  # batch sizes for inference
    training_batch_size: Optional[int] = None  # batch size for training


COMPILED_NETWORKS = (
    CompiledNetwork("mlp", "mlp-4x1024", 1, "default", (1, 128), 128),
    CompiledNetwork("torchvision", "vgg16", 2, "default", (1, 64)),
    CompiledNetwork("torchvision", "resnet18", 3, "default", (1, 128), 64),
    CompiledNetwork("timm", "mixer_s32_224", 4, "default", (1, 128)),
    CompiledNetwork("torchvision", "vit_b_16", 5, "bf16", (1, 64), 32),
    CompiledNetwork("transformers", "bert-base", 5, "bf16", (1, 32), 16),
    CompiledNetwork("transformers", "gpt2", 6, "default", (1, 16), 8),
    CompiledNetwork("transformers", "llama-160m", 6, "bf16", (1, 32)),
    CompiledNetwork("torchvision", "resnet50", 6, "amp-bf16", (1, 64), 64),
    CompiledNetwork("torchvision", "mobilenet_v2", 7, "default", (1, 128), 64),
    CompiledNetwork("torchvision", "efficientnet_b0", 10, "bf16", (1, 128)),
)
# A training step compiles a forward and a backward pass; the backward pass has more kernels.
TRAINING_COMPILE_FACTOR = 2.5


def plan_compiled_settings() -> list[list[networks.NetworkSetting]]:
    """Groups settings that share a loaded network and a pass, cheapest to compile first. Excludes held-out families."""
    network_by_name = {
        (network.package, network.name): network for network in networks.list_all_networks(held_out=False)
    }
    groups = []
    for compiled_network in COMPILED_NETWORKS:
        network = network_by_name[compiled_network.package, compiled_network.name]
        inference_settings = [
            networks.NetworkSetting(network, batch, network.sizes[0], compiled_network.dtype, "inference")
            for batch in compiled_network.batches
        ]
        groups.append((compiled_network.relative_compile_cost * len(inference_settings), inference_settings))
        if compiled_network.training_batch_size:
            dtype = "amp-bf16" if compiled_network.dtype == "bf16" else compiled_network.dtype
            batch_size = compiled_network.training_batch_size
            training_setting = networks.NetworkSetting(network, batch_size, network.sizes[0], dtype, "training")
            groups.append((compiled_network.relative_compile_cost * TRAINING_COMPILE_FACTOR, [training_setting]))
    return [settings for _, settings in sorted(groups, key=lambda group: group[0])]


def compiled_row_key(setting: networks.NetworkSetting, mode: str) -> str:
    return f"compiled {setting.key.removeprefix('network ')} {mode}"


def collect_compiled_networks(session: CollectorRun, deadline_s: float, active_s: float) -> None:
    torch, device = session.torch, session.runner.device
    unsettled_by_group = {
        group_index: unsettled_settings
        for group_index, settings in enumerate(plan_compiled_settings())
        if (unsettled_settings := select_unsettled_settings(session, settings))
    }
    pin_to_one_core()
    if COMPILE_BACKEND == "inductor":
        now_s = time.monotonic()
        fill_deadline_s = now_s + COMPILER_CACHE_FILL_FRACTION * (deadline_s - now_s)
        fill_compiler_caches(device, list(unsettled_by_group), fill_deadline_s)
    longest_s = 0.0
    for settings in unsettled_by_group.values():
        try:
            loaded_network = networks.LoadedNetwork(torch, device, settings[0].network)
        except networks.LOAD_ERRORS as error:
            print(
                f"joulemap collect: {settings[0].network.name}: {first_error_line(error)}", file=sys.stderr, flush=True
            )
            continue
        with loaded_network:
            for setting in settings:
                begin_s = time.monotonic()
                if begin_s + longest_s > deadline_s:
                    return
                measure_eager_and_compiled(session, loaded_network, setting, active_s)
                longest_s = max(longest_s, time.monotonic() - begin_s)


def select_unsettled_settings(
    session: CollectorRun, settings: Sequence[networks.NetworkSetting]
) -> list[networks.NetworkSetting]:
    is_settled = session.rows.is_settled
    return [
        setting
        for setting in settings
        if not all(is_settled(compiled_row_key(setting, mode)) for mode in EXECUTION_MODES)
    ]


def measure_eager_and_compiled(
    session: CollectorRun, loaded_network: networks.LoadedNetwork, setting: networks.NetworkSetting, active_s: float
) -> None:
    call_makers = {
        "eager": lambda: loaded_network.make_call(setting),
        "compiled": lambda: compile_network_call(session.torch, loaded_network, setting),
    }
    for mode in EXECUTION_MODES:
        identity = {
            "key": compiled_row_key(setting, mode),
            "kind": "compiled",
            "parameters": design.format_parameters(setting.parameters),
            "dtype": setting.dtype,
            "pass": setting.pass_name,
            "source": setting.network.family,
            "way": mode,
        }
        with networks.use_setting_precision(session.torch, setting):
            session.measure_row(
                identity,
                lambda: [call_makers[mode]()],
                active_s,
                False,
                counted=True,  # noqa: B023 called at once
            )
        session.write_remaining_rows()  # store the row first: compiling the next one may exceed the time limit
    session.torch._dynamo.reset()
    gc.collect()


def compile_network_call(
    torch: Any, loaded_network: networks.LoadedNetwork, setting: networks.NetworkSetting
) -> Callable[[], Any]:
    """Compiles one setting in isolation: an earlier compilation would make the compiler use dynamic shapes."""
    torch._dynamo.reset()
    call = loaded_network.make_call(setting, lambda model: torch.compile(model, backend=COMPILE_BACKEND))
    for _ in range(CALLS_UNTIL_COMPILED):
        call()
    return call


def fill_compiler_caches(device: str, group_indices: Sequence[int], deadline_s: float) -> None:
    package_folder = str(Path(__file__).resolve().parent.parent)

    def fill(group_index: int) -> None:
        remaining_s = deadline_s - time.monotonic()
        if remaining_s <= 0:
            return
        try:
            command = [sys.executable, "-c", CACHE_FILL_PROGRAM, package_folder, device, str(group_index)]
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=remaining_s, check=False)
        except subprocess.TimeoutExpired:  # compiled during measurement if time remains
            pass

    begin_s = time.monotonic()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as executor:
        list(executor.map(fill, group_indices))
    print(
        f"compiled {len(group_indices)} groups of settings in {time.monotonic() - begin_s:.0f} s",
        file=sys.stderr,
        flush=True,
    )


def fill_compiler_cache(device: str, group_index: int) -> None:
    import torch

    pin_to_one_core()
    settings = plan_compiled_settings()[group_index]
    with networks.LoadedNetwork(torch, device, settings[0].network) as loaded_network:
        for setting in settings:
            begin_s = time.monotonic()
            with networks.use_setting_precision(torch, setting):
                compile_network_call(torch, loaded_network, setting)
            print(
                f"{compiled_row_key(setting, 'compiled')}: {time.monotonic() - begin_s:.1f} s",
                file=sys.stderr,
                flush=True,
            )


def pin_to_one_core() -> None:
    """Disables the compiler's worker processes (one per core), which would slow down each other and the measurement."""
    import torch._inductor.config as config

    config.compile_threads = 1
