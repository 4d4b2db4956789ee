#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small programs with one known waste each, and the same programs with the advised change. advise.py runs this.

    joulemap record -- advise_programs.py CASE [--fixed] [--steps N] [--tiny]

Both variants do the same number of steps. --tiny shrinks them, to try the script on a CPU.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time

import torch
from advise_further import CASES as FURTHER_CASES
from torch import nn
from torch.nn import functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def mlp(width: int, depth: int, outputs: int = 10) -> nn.Module:
    layers = [part for _ in range(depth) for part in (nn.Linear(width, width), nn.GELU())]
    return nn.Sequential(*layers, nn.Linear(width, outputs)).to(DEVICE)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, fused: bool) -> None:
        super().__init__()
        self.heads, self.fused = heads, fused
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        queries, keys, values = (
            self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        )
        if self.fused:
            attention_output = F.scaled_dot_product_attention(queries, keys, values)
        else:
            attention_output = (
                torch.softmax(queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1]), -1) @ values
            )
        return self.out(attention_output.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, fused: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, fused)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


def transformer(width: int, depth: int, fused: bool = True) -> nn.Module:
    return nn.Sequential(*(Block(width, max(width // 64, 1), fused) for _ in range(depth))).to(DEVICE)


class PreprocessedImages(torch.utils.data.Dataset):
    """Images with preprocessing on the CPU that takes some milliseconds each."""

    def __init__(self, count: int, size: int, preprocessing_s: float) -> None:
        self.count, self.size, self.preprocessing_s = count, size, preprocessing_s

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        end = time.perf_counter() + self.preprocessing_s
        item = torch.full((3, self.size, self.size), index % 7, dtype=torch.float32)
        while time.perf_counter() < end:
            item = item.flip(1)
        return item, index % 10


def convnet(channels: int) -> nn.Module:
    layers: list[nn.Module] = []
    for inputs, outputs in (
        (3, channels),
        (channels, channels),
        (channels, 2 * channels),
        (2 * channels, 2 * channels),
    ):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * channels, 10)).to(DEVICE)


def train(model: nn.Module, batches, optimizer=None, autocast=None, each=None) -> None:
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=1e-3)
    for step, (inputs, targets) in enumerate(batches):
        optimizer.zero_grad()
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=bool(autocast)):
            output = model(inputs)
            loss = (
                F.cross_entropy(output.flatten(0, -2), targets)
                if targets is not None
                else output.float().square().mean()
            )
        loss.backward()
        optimizer.step()
        if each is not None:
            each(step, model, loss)


def repeat_batch(inputs: torch.Tensor, targets, steps: int):
    return ((inputs, targets) for _ in range(steps))


def data_loading(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    batch = 4 if is_tiny_run else 32
    options = (
        {"num_workers": 8, "pin_memory": DEVICE == "cuda", "persistent_workers": True}
        if fixed and not is_tiny_run
        else {}
    )
    loader = torch.utils.data.DataLoader(
        PreprocessedImages(steps * batch, 16 if is_tiny_run else 128, 1e-4 if is_tiny_run else 1e-3), batch, **options
    )
    batches = ((images.to(DEVICE, non_blocking=True), labels.to(DEVICE)) for images, labels in loader)
    train(convnet(4 if is_tiny_run else 64), batches)


def launch_bound(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    model = transformer(64, 2 if is_tiny_run else 24).eval()
    x = torch.randn(1, 16, 64, device=DEVICE)
    with torch.no_grad():
        if not fixed or DEVICE == "cpu":
            for _ in range(steps):
                model(x)
            return
        for _ in range(3):
            model(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(x)
        for _ in range(steps):
            graph.replay()
    torch.cuda.synchronize()


def synchronization(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    model = mlp(64 if is_tiny_run else 1024, 8)
    x, labels = torch.randn(64, 64 if is_tiny_run else 1024, device=DEVICE), torch.randint(0, 10, (64,), device=DEVICE)

    def each(step: int, model: nn.Module, loss: torch.Tensor) -> None:
        if fixed and step % 50:
            return
        for parameter in model.parameters():  # a gradient norm of each layer, read one by one
            parameter.grad.norm().item()
        loss.item()

    train(model, repeat_batch(x, labels, steps), each=each)


def checkpoint(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    model = mlp(64 if is_tiny_run else 2048, 8)
    x = torch.randn(256, 64 if is_tiny_run else 2048, device=DEVICE)
    labels = torch.randint(0, 10, (256,), device=DEVICE)
    with tempfile.TemporaryDirectory() as folder:

        def each(step: int, model: nn.Module, loss: torch.Tensor) -> None:
            if step % (steps // 2 if fixed else 20) == 0:
                torch.save(model.state_dict(), f"{folder}/model.pt")

        train(model, repeat_batch(x, labels, steps), each=each)


def host_code(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    model, size = convnet(4 if is_tiny_run else 64), 16 if is_tiny_run else 128
    images, labels = torch.randn(32, 3, size, size), torch.randint(0, 10, (32,), device=DEVICE)
    on_gpu = images.to(DEVICE)

    def batches():
        for _ in range(steps):
            source = on_gpu if fixed else images
            augmented_images = (source + 0.1 * torch.randn_like(source)).clamp(-2, 2).flip(3)  # augmentation
            yield augmented_images.to(DEVICE), labels

    train(model, batches())


def full_precision(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    torch.set_float32_matmul_precision("high" if fixed else "highest")
    width = 64 if is_tiny_run else 2048
    x, labels = torch.randn(2048, width, device=DEVICE), torch.randint(0, 10, (2048,), device=DEVICE)
    train(mlp(width, 6), repeat_batch(x, labels, steps))


def half_precision(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    torch.set_float32_matmul_precision("high")
    width = 64 if is_tiny_run else 4096
    x, labels = torch.randn(4096, width, device=DEVICE), torch.randint(0, 10, (4096,), device=DEVICE)
    train(mlp(width, 6), repeat_batch(x, labels, steps), autocast=fixed)


def memory_layout(fixed: bool, steps: int, is_tiny_run: bool, compiled: bool = False) -> None:
    form = torch.channels_last if fixed else torch.contiguous_format
    model = convnet(4 if is_tiny_run else 128).to(memory_format=form)
    model = torch.compile(model) if compiled and not is_tiny_run else model
    images = torch.randn(32, 3, 16 if is_tiny_run else 96, 16 if is_tiny_run else 96, device=DEVICE).to(
        memory_format=form
    )
    train(model, repeat_batch(images, torch.randint(0, 10, (32,), device=DEVICE), steps), autocast=True)


def unfused_attention(fixed: bool, steps: int, is_tiny_run: bool, compiled: bool = False) -> None:
    model = transformer(64 if is_tiny_run else 512, 2 if is_tiny_run else 4, fused=fixed)
    model = torch.compile(model) if compiled and not is_tiny_run else model
    x = torch.randn(2 if is_tiny_run else 16, 32 if is_tiny_run else 1024, 64 if is_tiny_run else 512, device=DEVICE)
    train(model, repeat_batch(x, None, steps), autocast=True)


class ElementwiseChain(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(x) * 0.5 + 0.25
        y = y * torch.sigmoid(x) - 0.1 * x
        return (y - y.mean(-1, keepdim=True)) * torch.exp(-(y * y)) + x


def unfused_elementwise(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    width = 64 if is_tiny_run else 4096
    model = nn.Sequential(*(ElementwiseChain() for _ in range(4)), nn.Linear(width, 10)).to(DEVICE)
    if fixed and not is_tiny_run:
        model = torch.compile(model)
    x, labels = torch.randn(8192, width, device=DEVICE), torch.randint(0, 10, (8192,), device=DEVICE)
    train(model, repeat_batch(x, labels, steps))


def unfused_optimizer(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    model = nn.Sequential(*(nn.Linear(64 if is_tiny_run else 512, 64 if is_tiny_run else 512) for _ in range(60))).to(
        DEVICE
    )
    options = {"fused": True} if fixed and DEVICE == "cuda" else {"foreach": False}
    x = torch.randn(64, 64 if is_tiny_run else 512, device=DEVICE)
    train(model, repeat_batch(x, None, steps), torch.optim.AdamW(model.parameters(), lr=1e-4, **options))


def host_copies(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    model, size = convnet(4 if is_tiny_run else 32), 16 if is_tiny_run else 224
    images = torch.randint(0, 255, (64, 3, size, size), dtype=torch.uint8)
    labels = torch.randint(0, 10, (64,), device=DEVICE)
    source = images if fixed else images.float()
    source = source.pin_memory() if fixed and DEVICE == "cuda" else source
    batches = ((source.to(DEVICE, non_blocking=fixed).float() / 255, labels) for _ in range(steps))
    train(model, batches, autocast=True)


def unfused_elementwise_convnet(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    memory_layout(True, steps, is_tiny_run, compiled=fixed)


def unfused_elementwise_attention(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    unfused_attention(True, steps, is_tiny_run, compiled=fixed)


def healthy_transformer(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    model = transformer(64 if is_tiny_run else 1024, 2 if is_tiny_run else 8).bfloat16()
    model = torch.compile(model) if not is_tiny_run else model
    x = torch.randn(
        4 if is_tiny_run else 16,
        32 if is_tiny_run else 512,
        64 if is_tiny_run else 1024,
        device=DEVICE,
        dtype=torch.bfloat16,
    )
    train(model, repeat_batch(x, None, steps), torch.optim.AdamW(model.parameters(), lr=1e-4, fused=DEVICE == "cuda"))


def healthy_convnet(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    memory_layout(True, steps, is_tiny_run, compiled=True)


def healthy_mlp(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    half_precision(True, steps, is_tiny_run)


def healthy_attention(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    model = transformer(64 if is_tiny_run else 1024, 2 if is_tiny_run else 4)
    model = torch.compile(model) if not is_tiny_run else model
    x = torch.randn(2 if is_tiny_run else 24, 32 if is_tiny_run else 1024, 64 if is_tiny_run else 1024, device=DEVICE)
    train(model, repeat_batch(x, None, steps), autocast=True)


def healthy_inference(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    model = transformer(64 if is_tiny_run else 2048, 2 if is_tiny_run else 6).bfloat16().eval()
    x = torch.randn(
        4 if is_tiny_run else 16,
        32 if is_tiny_run else 512,
        64 if is_tiny_run else 2048,
        device=DEVICE,
        dtype=torch.bfloat16,
    )
    with torch.no_grad():
        for _ in range(steps):
            model(x)


# Waste: steps of both variants, about 6 s of the wasteful one on an H200.
CASES = {
    data_loading: 150, launch_bound: 1500, synchronization: 1200, checkpoint: 600, host_code: 250, full_precision: 250,
    half_precision: 150, memory_layout: 400, unfused_attention: 120, unfused_elementwise: 200, unfused_optimizer: 250,
    host_copies: 150,
}  # fmt: skip
FURTHER_CASES |= {unfused_elementwise_convnet: 400, unfused_elementwise_attention: 200}
HEALTHY_CASES = {
    healthy_transformer: 150,
    healthy_convnet: 400,
    healthy_mlp: 200,
    healthy_attention: 200,
    healthy_inference: 150,
}
CASES_BY_NAME = {case.__name__: (case, steps) for case, steps in {**CASES, **FURTHER_CASES, **HEALTHY_CASES}.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES_BY_NAME)
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    case, steps = CASES_BY_NAME[options.case]
    case(options.fixed, options.steps or steps, options.tiny)
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return 0


if __name__ == "__main__":
    sys.exit(main())
