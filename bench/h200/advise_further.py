# SPDX-License-Identifier: Apache-2.0
"""Further programs with one known waste each, for advise.py. No rule was adjusted to them: they are looked at once.

Each function has the name of the rule that should find the waste, with a suffix. Both variants do the same number of
steps; `tiny` shrinks them, to try the script on a CPU.
"""

from __future__ import annotations

import io
import math

import torch
from torch import nn
from torch.nn import functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def bottleneck(inner_channels: int, outer_channels: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(outer_channels, inner_channels, 1, bias=False),
                         nn.BatchNorm2d(inner_channels), nn.ReLU(),
                         nn.Conv2d(inner_channels, inner_channels, 3, padding=1, bias=False),
                         nn.BatchNorm2d(inner_channels), nn.ReLU(),
                         nn.Conv2d(inner_channels, outer_channels, 1, bias=False),
                         nn.BatchNorm2d(outer_channels))  # fmt: skip


class Residual(nn.Module):
    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x + self.branch(x))


def resnet(width: int, depth: int) -> nn.Module:
    stem = [nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    blocks = [Residual(bottleneck(width // 4, width)) for _ in range(depth)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100)).to(DEVICE)


class RmsNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


class LlamaBlock(nn.Module):
    """Written as people write it: norms and SwiGLU from elementwise operations."""

    def __init__(self, width: int, fused: bool = True) -> None:
        super().__init__()
        self.heads, self.fused = max(width // 64, 1), fused
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, 3 * width, bias=False)
        self.down = nn.Linear(3 * width, width, bias=False)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        queries, keys, values = (
            self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        )
        if self.fused:
            return (
                F.scaled_dot_product_attention(queries, keys, values, is_causal=True).transpose(1, 2).reshape(x.shape)
            )
        scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
        scores = scores.masked_fill(
            torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1), float("-inf")
        )
        return (torch.softmax(scores, -1) @ values).transpose(1, 2).reshape(x.shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.out(self.attend(self.norm1(x)))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def llama(width: int, depth: int, fused: bool = True) -> nn.Module:
    return nn.Sequential(*(LlamaBlock(width, fused) for _ in range(depth))).to(DEVICE)


def train(model: nn.Module, batches, optimizer=None, half: bool = False, after=None) -> None:
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=1e-3)
    for step, inputs in enumerate(batches):
        optimizer.zero_grad()
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=half):
            output = model(inputs)
            loss = output.float().square().mean()
        loss.backward()
        optimizer.step()
        if after is not None:
            after(step, model, optimizer, output, loss)


def repeat_inputs(inputs: torch.Tensor, steps: int):
    return (inputs for _ in range(steps))


class DocumentDataset(torch.utils.data.Dataset):
    """Token sequences that are tokenized in Python when they are read."""

    def __init__(self, count: int, length: int) -> None:
        self.count, self.length = count, length

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        words = [f"w{(index * 7919 + i * 104729) % 50021}" for i in range(self.length * 4)]
        return torch.tensor([hash(word) % 8192 for word in words][: self.length])


def data_loading_text(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    width, batch = (64, 2) if is_tiny_run else (1024, 16)
    options = {"num_workers": 8, "pin_memory": True, "persistent_workers": True} if fixed and not is_tiny_run else {}
    loader = torch.utils.data.DataLoader(DocumentDataset(steps * batch, 64 if is_tiny_run else 512), batch, **options)
    model = nn.Sequential(nn.Embedding(8192, width), llama(width, 2 if is_tiny_run else 6)).to(DEVICE)
    train(model, (tokens.to(DEVICE, non_blocking=True) for tokens in loader), half=True)


def launch_bound_recurrent(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    cell, x = nn.LSTMCell(128, 128).to(DEVICE), torch.randn(8, 128, device=DEVICE)

    def run() -> torch.Tensor:
        state = None
        for _ in range(10 if is_tiny_run else 60):
            state = cell(x, state)
        return state[0]

    with torch.no_grad():
        if fixed and DEVICE == "cuda":
            run()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                run()
            run = graph.replay
        for _ in range(steps):
            run()


def synchronization_metrics(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    model = resnet(16 if is_tiny_run else 128, 2 if is_tiny_run else 12)
    images = torch.randn(8, 3, 32, 32, device=DEVICE)

    def after(step, model, optimizer, output, loss) -> None:
        if not fixed or step % 100 == 0:
            for layer in model:  # statistics of every layer, for a log
                for parameter in layer.parameters():
                    float(parameter.grad.abs().max())

    train(model, repeat_inputs(images, steps), after=after)


def checkpoint_optimizer(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    model = llama(64 if is_tiny_run else 768, 2 if is_tiny_run else 6)
    x = torch.randn(2 if is_tiny_run else 8, 32 if is_tiny_run else 256, 64 if is_tiny_run else 768, device=DEVICE)
    checkpoint_interval_steps = max(steps // 2, 1) if fixed else 15

    def after(step, model, optimizer, output, loss) -> None:
        if step % checkpoint_interval_steps == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, io.BytesIO())

    train(
        model,
        repeat_inputs(x, steps),
        torch.optim.AdamW(model.parameters(), fused=DEVICE == "cuda"),
        half=True,
        after=after,
    )


def host_code_labels(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    model = resnet(16 if is_tiny_run else 256, 2 if is_tiny_run else 8)
    images = torch.randn(32, 3, 32 if is_tiny_run else 64, 32 if is_tiny_run else 64, device=DEVICE)
    table = {i: math.sin(i) for i in range(20000)}

    def after(step, model, optimizer, output, loss) -> None:
        if not fixed:  # a sampler in Python
            sorted(table, key=table.get)[:32]

    train(model, repeat_inputs(images, steps), after=after)


def full_precision_convolutions(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    torch.backends.cudnn.allow_tf32 = fixed
    torch.set_float32_matmul_precision("high" if fixed else "highest")
    model, size = (
        resnet(16 if is_tiny_run else 512, 2 if is_tiny_run else 8).to(memory_format=torch.channels_last),
        32 if is_tiny_run else 112,
    )
    images = torch.randn(32, 3, size, size, device=DEVICE).to(memory_format=torch.channels_last)
    train(model, repeat_inputs(images, steps))


def half_precision_transformer(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    torch.set_float32_matmul_precision("high")
    model = llama(64 if is_tiny_run else 1536, 2 if is_tiny_run else 6)
    x = torch.randn(2 if is_tiny_run else 16, 32 if is_tiny_run else 512, 64 if is_tiny_run else 1536, device=DEVICE)
    train(model, repeat_inputs(x, steps), half=fixed)


def memory_layout_resnet(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    form = torch.channels_last if fixed else torch.contiguous_format
    model = resnet(16 if is_tiny_run else 512, 2 if is_tiny_run else 10).to(memory_format=form)
    images = torch.randn(64, 3, 32 if is_tiny_run else 112, 32 if is_tiny_run else 112, device=DEVICE).to(
        memory_format=form
    )
    train(model, repeat_inputs(images, steps), half=True)


def unfused_attention_causal(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    model = llama(64 if is_tiny_run else 1024, 2 if is_tiny_run else 4, fused=fixed).bfloat16()
    x = torch.randn(
        2 if is_tiny_run else 4,
        32 if is_tiny_run else 2048,
        64 if is_tiny_run else 1024,
        device=DEVICE,
        dtype=torch.bfloat16,
    )
    train(model, repeat_inputs(x, steps))


def unfused_elementwise_norms(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    model = llama(64 if is_tiny_run else 768, 2 if is_tiny_run else 6).bfloat16()
    model = torch.compile(model) if fixed and not is_tiny_run else model
    x = torch.randn(
        2 if is_tiny_run else 16,
        32 if is_tiny_run else 1024,
        64 if is_tiny_run else 768,
        device=DEVICE,
        dtype=torch.bfloat16,
    )
    train(model, repeat_inputs(x, steps))


def unfused_optimizer_large(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    model = nn.Sequential(*(nn.Linear(64 if is_tiny_run else 1536, 64 if is_tiny_run else 1536) for _ in range(30))).to(
        DEVICE
    )
    options = {"fused": True} if fixed and DEVICE == "cuda" else {"foreach": False}
    x = torch.randn(32, 64 if is_tiny_run else 1536, device=DEVICE)
    train(model, repeat_inputs(x, steps), torch.optim.Adam(model.parameters(), lr=1e-4, **options))


def host_copies_inference(fixed: bool, steps: int, is_tiny_run: bool) -> None:
    model = resnet(16 if is_tiny_run else 128, 2).eval().half()
    size = 32 if is_tiny_run else 256
    images = torch.randint(0, 255, (128, 3, size, size), dtype=torch.uint8)
    source = images if fixed else images.float()
    source = source.pin_memory() if fixed and DEVICE == "cuda" else source
    with torch.no_grad():
        for _ in range(steps):
            model(source.to(DEVICE, non_blocking=fixed).half() / 255)


# Steps of both variants, some seconds of the wasteful one on an H200.
CASES = {
    data_loading_text: 150, launch_bound_recurrent: 600, synchronization_metrics: 250, checkpoint_optimizer: 240,
    host_code_labels: 300, full_precision_convolutions: 150, half_precision_transformer: 80, memory_layout_resnet: 150,
    unfused_attention_causal: 120, unfused_elementwise_norms: 150, unfused_optimizer_large: 300, host_copies_inference: 250,
}  # fmt: skip
