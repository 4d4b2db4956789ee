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
WAYS = ("eager", "compiled")
# Share of the available time spent on filling the compiler's cache.
WARMING_SHARE = 0.6
# The first call compiles the forward and backward passes; the second call behaves like all later ones.
COMPILING_CALLS = 2
WARMER = (
    "import sys; sys.path.insert(0, sys.argv[1]); from _collect import compiled;"
    "compiled.fill_cache(sys.argv[2], int(sys.argv[3]))"
)


class Listed(NamedTuple):
    package: str
    name: str
    effort: float  # relative cost of compiling a forward pass; cheap ones come first
    dtype: str
    batches: tuple  # batch sizes for inference
    training: Optional[int] = None  # batch size for training


LISTED = (
    Listed("mlp", "mlp-4x1024", 1, "default", (1, 128), 128),
    Listed("torchvision", "vgg16", 2, "default", (1, 64)),
    Listed("torchvision", "resnet18", 3, "default", (1, 128), 64),
    Listed("timm", "mixer_s32_224", 4, "default", (1, 128)),
    Listed("torchvision", "vit_b_16", 5, "bf16", (1, 64), 32),
    Listed("transformers", "bert-base", 5, "bf16", (1, 32), 16),
    Listed("transformers", "gpt2", 6, "default", (1, 16), 8),
    Listed("transformers", "llama-160m", 6, "bf16", (1, 32)),
    Listed("torchvision", "resnet50", 6, "amp-bf16", (1, 64), 64),
    Listed("torchvision", "mobilenet_v2", 7, "default", (1, 128), 64),
    Listed("torchvision", "efficientnet_b0", 10, "bf16", (1, 128)),
)
# A training step compiles a forward and a backward pass; the backward pass has more kernels.
TRAINING_EFFORT = 2.5


def plan() -> list[list[networks.Setting]]:
    """Groups settings that share a loaded network and a pass, cheapest to compile first. Excludes held-out families."""
    known = {(one.package, one.name): one for one in networks.all_networks(held_out=False)}
    groups = []
    for one in LISTED:
        network = known[one.package, one.name]
        inferred = [networks.Setting(network, batch, network.sizes[0], one.dtype, "inference") for batch in one.batches]
        groups.append((one.effort * len(inferred), inferred))
        if one.training:
            dtype = "amp-bf16" if one.dtype == "bf16" else one.dtype
            trained = networks.Setting(network, one.training, network.sizes[0], dtype, "training")
            groups.append((one.effort * TRAINING_EFFORT, [trained]))
    return [settings for _, settings in sorted(groups, key=lambda group: group[0])]


def key_of(setting: networks.Setting, way: str) -> str:
    return f"compiled {setting.key.removeprefix('network ')} {way}"


def collect(session: Session, until_s: float, active_s: float) -> None:
    torch, device = session.torch, session.runner.device
    wanted = {number: some for number, settings in enumerate(plan()) if (some := unsettled(session, settings))}
    use_one_core()
    if BACKEND == "inductor":
        warm(device, list(wanted), time.monotonic() + WARMING_SHARE * (until_s - time.monotonic()))
    longest_s = 0.0
    for settings in wanted.values():
        try:
            loaded = networks.Loaded(torch, device, settings[0].network)
        except networks.CANNOT_LOAD as error:
            print(f"joulemap collect: {settings[0].network.name}: {first_line(error)}", file=sys.stderr, flush=True)
            continue
        with loaded:
            for setting in settings:
                begin_s = time.monotonic()
                if begin_s + longest_s > until_s:
                    return
                measure(session, loaded, setting, active_s)
                longest_s = max(longest_s, time.monotonic() - begin_s)


def unsettled(session: Session, settings: Sequence[networks.Setting]) -> list[networks.Setting]:
    is_settled = session.rows.is_settled
    return [setting for setting in settings if not all(is_settled(key_of(setting, way)) for way in WAYS)]


def measure(session: Session, loaded: networks.Loaded, setting: networks.Setting, active_s: float) -> None:
    makers = {"eager": lambda: loaded.call_of(setting), "compiled": lambda: compiled_call(session.torch, loaded, setting)}
    for way in WAYS:
        told = {
            "key": key_of(setting, way),
            "kind": "compiled",
            "parameters": design.parameters_text(setting.parameters),
            "dtype": setting.dtype,
            "pass": setting.which,
            "source": setting.network.family,
            "way": way,
        }
        with networks.within(session.torch, setting):
            session.measure(told, lambda: [makers[way]()], active_s, False, counted=True)  # noqa: B023 called at once
        session.finish()  # store the row first: compiling the next one may exceed the time limit
    session.torch._dynamo.reset()
    gc.collect()


def compiled_call(torch: Any, loaded: networks.Loaded, setting: networks.Setting) -> Callable[[], Any]:
    """Compiles one setting in isolation: an earlier compilation would make the compiler use dynamic shapes."""
    torch._dynamo.reset()
    call = loaded.call_of(setting, lambda model: torch.compile(model, backend=BACKEND))
    for _ in range(COMPILING_CALLS):
        call()
    return call


def warm(device: str, numbers: Sequence[int], until_s: float) -> None:
    folder = str(Path(__file__).resolve().parent.parent)

    def fill(number: int) -> None:
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            return
        try:
            command = [sys.executable, "-c", WARMER, folder, device, str(number)]
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=left_s, check=False)
        except subprocess.TimeoutExpired:  # compiled during measurement if time remains
            pass

    begin_s = time.monotonic()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as side_by_side:
        list(side_by_side.map(fill, numbers))
    print(f"compiled {len(numbers)} groups of settings in {time.monotonic() - begin_s:.0f} s", file=sys.stderr, flush=True)


def fill_cache(device: str, number: int) -> None:
    import torch

    use_one_core()
    settings = plan()[number]
    with networks.Loaded(torch, device, settings[0].network) as loaded:
        for setting in settings:
            begin_s = time.monotonic()
            with networks.within(torch, setting):
                compiled_call(torch, loaded, setting)
            print(f"{key_of(setting, 'compiled')}: {time.monotonic() - begin_s:.1f} s", file=sys.stderr, flush=True)


def use_one_core() -> None:
    """Disables the compiler's worker processes, one per core: they would slow down each other and the measurement."""
    import torch._inductor.config as config

    config.compile_threads = 1
