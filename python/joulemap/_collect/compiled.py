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
from .session import Session, first_line

BACKEND = "inductor"  # default backend of torch.compile
MODES = ("eager", "compiled")
# Share of the available time spent on filling the compiler's cache.
CACHE_TIME_SHARE = 0.6
# Calls before a setting counts as compiled: the first compiles the forward and backward passes, the second behaves like
# all later ones.
COMPILING_CALLS = 2
CACHE_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from _collect import compiled;"
    "compiled.fill_cache(sys.argv[2], int(sys.argv[3]))"
)


class ListedNetwork(NamedTuple):
    package: str
    name: str
    effort: float  # relative cost of compiling a forward pass; cheap ones come first
    dtype: str
    batches: tuple  # batch sizes for inference
    training: Optional[int] = None  # batch size for training


LISTED_NETWORKS = (
    ListedNetwork("mlp", "mlp-4x1024", 1, "default", (1, 128), 128),
    ListedNetwork("torchvision", "vgg16", 2, "default", (1, 64)),
    ListedNetwork("torchvision", "resnet18", 3, "default", (1, 128), 64),
    ListedNetwork("timm", "mixer_s32_224", 4, "default", (1, 128)),
    ListedNetwork("torchvision", "vit_b_16", 5, "bf16", (1, 64), 32),
    ListedNetwork("transformers", "bert-base", 5, "bf16", (1, 32), 16),
    ListedNetwork("transformers", "gpt2", 6, "default", (1, 16), 8),
    ListedNetwork("transformers", "llama-160m", 6, "bf16", (1, 32)),
    ListedNetwork("torchvision", "resnet50", 6, "amp-bf16", (1, 64), 64),
    ListedNetwork("torchvision", "mobilenet_v2", 7, "default", (1, 128), 64),
    ListedNetwork("torchvision", "efficientnet_b0", 10, "bf16", (1, 128)),
)
# A training step compiles a forward and a backward pass; the backward pass has more kernels.
TRAINING_EFFORT = 2.5


def plan() -> list[list[networks.Setting]]:
    """Groups settings that share a loaded network and a pass, cheapest to compile first. Excludes held-out families."""
    known = {(listed.package, listed.name): listed for listed in networks.all_networks(held_out=False)}
    groups = []
    for listed in LISTED_NETWORKS:
        network = known[listed.package, listed.name]
        inference = [
            networks.Setting(network, batch, network.sizes[0], listed.dtype, "inference") for batch in listed.batches
        ]
        groups.append((listed.effort * len(inference), inference))
        if listed.training:
            dtype = "amp-bf16" if listed.dtype == "bf16" else listed.dtype
            training_run = networks.Setting(network, listed.training, network.sizes[0], dtype, "training")
            groups.append((listed.effort * TRAINING_EFFORT, [training_run]))
    return [settings for _, settings in sorted(groups, key=lambda group: group[0])]


def key_of(setting: networks.Setting, mode: str) -> str:
    return f"compiled {setting.key.removeprefix('network ')} {mode}"


def collect(session: Session, deadline_s: float, active_s: float) -> None:
    torch, device = session.torch, session.runner.device
    wanted = {
        number: remaining for number, settings in enumerate(plan()) if (remaining := unsettled(session, settings))
    }
    use_one_core()
    if BACKEND == "inductor":
        fill_caches(device, list(wanted), time.monotonic() + CACHE_TIME_SHARE * (deadline_s - time.monotonic()))
    longest_s = 0.0
    for settings in wanted.values():
        try:
            loaded = networks.LoadedNetwork(torch, device, settings[0].network)
        except networks.LOAD_ERRORS as error:
            print(f"joulemap collect: {settings[0].network.name}: {first_line(error)}", file=sys.stderr, flush=True)
            continue
        with loaded:
            for setting in settings:
                begin_s = time.monotonic()
                if begin_s + longest_s > deadline_s:
                    return
                measure(session, loaded, setting, active_s)
                longest_s = max(longest_s, time.monotonic() - begin_s)


def unsettled(session: Session, settings: Sequence[networks.Setting]) -> list[networks.Setting]:
    is_settled = session.rows.is_settled
    return [setting for setting in settings if not all(is_settled(key_of(setting, mode)) for mode in MODES)]


def measure(session: Session, loaded: networks.LoadedNetwork, setting: networks.Setting, active_s: float) -> None:
    makers = {"eager": lambda: loaded.call_of(setting), "compiled": lambda: compiled_call(session.torch, loaded, setting)}
    for mode in MODES:
        identity = {
            "key": key_of(setting, mode),
            "kind": "compiled",
            "parameters": design.parameters_text(setting.parameters),
            "dtype": setting.dtype,
            "pass": setting.which,
            "source": setting.network.family,
            "way": mode,
        }
        with networks.applied_setting(session.torch, setting):
            session.measure(identity, lambda: [makers[mode]()], active_s, False, counted=True)  # noqa: B023 called at once
        session.finish()  # store the row first: compiling the next one may exceed the time limit
    session.torch._dynamo.reset()
    gc.collect()


def compiled_call(torch: Any, loaded: networks.LoadedNetwork, setting: networks.Setting) -> Callable[[], Any]:
    """Compiles one setting in isolation: an earlier compilation would make the compiler use dynamic shapes."""
    torch._dynamo.reset()
    call = loaded.call_of(setting, lambda model: torch.compile(model, backend=BACKEND))
    for _ in range(COMPILING_CALLS):
        call()
    return call


def fill_caches(device: str, numbers: Sequence[int], deadline_s: float) -> None:
    folder = str(Path(__file__).resolve().parent.parent)

    def fill(number: int) -> None:
        remaining_s = deadline_s - time.monotonic()
        if remaining_s <= 0:
            return
        try:
            command = [sys.executable, "-c", CACHE_PROGRAM, folder, device, str(number)]
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=remaining_s, check=False)
        except subprocess.TimeoutExpired:  # compiled during measurement if time remains
            pass

    begin_s = time.monotonic()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as executor:
        list(executor.map(fill, numbers))
    print(f"compiled {len(numbers)} groups of settings in {time.monotonic() - begin_s:.0f} s", file=sys.stderr, flush=True)


def fill_cache(device: str, number: int) -> None:
    import torch

    use_one_core()
    settings = plan()[number]
    with networks.LoadedNetwork(torch, device, settings[0].network) as loaded:
        for setting in settings:
            begin_s = time.monotonic()
            with networks.applied_setting(torch, setting):
                compiled_call(torch, loaded, setting)
            print(f"{key_of(setting, 'compiled')}: {time.monotonic() - begin_s:.1f} s", file=sys.stderr, flush=True)


def use_one_core() -> None:
    """Disables the compiler's worker processes (one per core), which would slow down each other and the measurement."""
    import torch._inductor.config as config

    config.compile_threads = 1
