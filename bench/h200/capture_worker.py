#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one network (training or inference) in blocks of steps on request of capture.py. Several workers share the GPU
and take turns: one under joulemap, one without a tool, others under other tools, so that all run under the same
conditions.

    capture_worker.py NETWORK TOOL      then on stdin: "run STEPS"; on stdout a line of JSON for each, after "ready"

NETWORK: resnet50, bert, gpt2, vit, mobilenet, efficientnet, llama, each with "-inference" behind it; tiny for machines
without a GPU. TOOL:
nothing, torch-profiler, zeus, codecarbon, carbontracker, pyjoules, gatorch. joulemap-later runs without a tool until
"watch" arrives on stdin, then under joulemap; "turns SECONDS" then alternates captured and uncaptured runs of steps.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time

if sys.argv[2:3] == ["joulemap-later"]:
    from delayed_capture import delay_capture, run_captured_and_uncaptured

    start_capture = delay_capture()

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def images(model: nn.Module, batch: int, pixels: int, classes: int = 1000):
    x = torch.randn(batch, 3, pixels, pixels, device=DEVICE)
    y = torch.randint(0, classes, (batch,), device=DEVICE)
    return model, lambda: nn.functional.cross_entropy(model(x), y), lambda: model(x)


def text(model: nn.Module, batch: int, length: int, vocabulary: int, labelled: bool):
    tokens = torch.randint(0, vocabulary, (batch, length), device=DEVICE)
    labels = tokens if labelled else torch.randint(0, 2, (batch,), device=DEVICE)
    return model, lambda: model(input_ids=tokens, labels=labels).loss, lambda: model(input_ids=tokens)


def resnet50():
    import torchvision

    return images(torchvision.models.resnet50().to(DEVICE), 64, 224)


def mobilenet():
    import torchvision

    return images(torchvision.models.mobilenet_v3_small().to(DEVICE), 16, 96)


def vit():
    import torchvision

    return images(torchvision.models.vit_b_16().to(DEVICE), 32, 224)


def bert():
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(num_hidden_layers=6)
    return text(BertForSequenceClassification(config).to(DEVICE), 32, 128, config.vocab_size, labelled=False)


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=6)
    return text(GPT2LMHeadModel(config).to(DEVICE), 16, 256, config.vocab_size, labelled=True)


def efficientnet():
    import torchvision

    model = torchvision.models.efficientnet_b0(num_classes=100).to(DEVICE, memory_format=torch.channels_last)
    return images(model, 32, 224, 100)


def llama():
    """Eight layers in bfloat16: many small kernels, as in the inner loop of most language models."""
    from user_program_language import llama as make

    model = make(torch, 512, 8, 8).to(DEVICE).bfloat16()
    tokens = torch.randint(0, 32000, (8, 512), device=DEVICE)
    return model, lambda: model(tokens).float().square().mean(), lambda: model(tokens)


def tiny_network():
    layers = [nn.Conv2d(3, 8, 3), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)]
    return images(nn.Sequential(*layers).to(DEVICE), 8, 32, 10)


NETWORKS = {
    "resnet50": resnet50,
    "mobilenet": mobilenet,
    "vit": vit,
    "bert": bert,
    "gpt2": gpt2,
    "efficientnet": efficientnet,
    "llama": llama,
    "tiny": tiny_network,
}


def training_step(compute_loss, model: nn.Module):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        compute_loss().backward()
        optimizer.step()

    return step


def inference_step(answer, model: nn.Module):
    model.eval()

    def step() -> None:
        with torch.no_grad():
            answer()

    return step


def prepare_torch_profiler(step, model):
    from torch.profiler import ProfilerActivity, profile

    kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if DEVICE == "cuda" else [])
    return step, lambda: profile(activities=kinds)


def prepare_zeus(step, model):
    from zeus.monitor import ZeusMonitor

    monitor = ZeusMonitor(gpu_indices=[0], cpu_indices=[])

    def measured() -> None:
        monitor.begin_window("step")
        step()
        monitor.end_window("step")

    return measured, contextlib.nullcontext


def prepare_codecarbon(step, model):
    from codecarbon import OfflineEmissionsTracker

    tracker = OfflineEmissionsTracker(country_iso_code="CHE", save_to_file=False, log_level="critical")
    tracker.start()
    return step, contextlib.nullcontext


def prepare_carbontracker(step, model):
    """carbontracker's threads measure one epoch at a time; here the rest of the process is one epoch."""
    from carbontracker.tracker import CarbonTracker

    tracker = CarbonTracker(epochs=1, monitor_epochs=-1, components="gpu", verbose=0)
    tracker.epoch_start()
    return step, contextlib.nullcontext


def prepare_pyjoules(step, model):
    from pyJoules.device import DeviceFactory
    from pyJoules.device.nvidia_device import NvidiaGPUDomain
    from pyJoules.energy_meter import EnergyMeter

    meter = EnergyMeter(DeviceFactory.create_devices([NvidiaGPUDomain(0)]))

    def measured() -> None:
        meter.start(tag="step")
        step()
        meter.stop()

    return measured, contextlib.nullcontext


def prepare_gatorch(step, model):
    from GATorch import GA

    GA().attach_model(model)
    return step, contextlib.nullcontext


MEASUREMENT_TOOLS = {
    "nothing": lambda step, model: (step, contextlib.nullcontext),
    "joulemap-later": lambda step, model: (step, contextlib.nullcontext),
    "torch-profiler": prepare_torch_profiler,
    "zeus": prepare_zeus,
    "codecarbon": prepare_codecarbon,
    "carbontracker": prepare_carbontracker,
    "pyjoules": prepare_pyjoules,
    "gatorch": prepare_gatorch,
}


def synchronize() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def prepare(network: str, tool: str):
    torch.manual_seed(0)
    model, compute_loss, answer = NETWORKS[network.removesuffix("-inference")]()
    step = inference_step(answer, model) if network.endswith("-inference") else training_step(compute_loss, model)
    step, measurement_context = MEASUREMENT_TOOLS[tool](step, model)
    for _ in range(20):
        step()
    synchronize()
    return step, measurement_context


def main() -> None:
    try:
        step, measurement_context = prepare(*sys.argv[1:3])
    except Exception as error:  # noqa: BLE001 - a tool that does not support this network is a finding
        print(f"failed {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
        return
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "watch":
            start_capture()
            continue
        if line.startswith("turns "):
            print(json.dumps({"steps": run_captured_and_uncaptured(step, float(line.split()[1]))}), flush=True)
            continue
        steps = int(line.split()[1])
        with measurement_context():
            for _ in range(3):  # warm-up after the pause in which other workers ran
                step()
            synchronize()
            begin = time.monotonic()
            for _ in range(steps):
                step()
            synchronize()
            end = time.monotonic()
        print(json.dumps({"begin": begin, "end": end, "step_s": (end - begin) / steps}), flush=True)


if __name__ == "__main__":
    main()
