#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small programs for CPUs with one known waste each, and the same programs with the advised change. cpu.py runs this.

    joulemap record -- cpu_programs.py CASE [--fixed] [--steps N]

Both variants process the same items in the same number of steps, except for cases that change the batch size.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile

import torch
from torch import nn
from torch.nn import functional as F


def mlp(width: int, depth: int, outputs: int = 10) -> nn.Module:
    layers = [part for _ in range(depth) for part in (nn.Linear(width, width), nn.GELU())]
    return nn.Sequential(*layers, nn.Linear(width, outputs))


def convnet(channels: int) -> nn.Module:
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, channels), (channels, channels), (channels, 2 * channels)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * channels, 10))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, fused: bool, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.fused, self.causal = heads, fused, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        queries, keys, values = (
            self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        )
        if self.fused:
            attention_output = F.scaled_dot_product_attention(queries, keys, values, is_causal=self.causal)
        else:
            scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
            if self.causal:
                scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), float("-inf"))
            attention_output = torch.softmax(scores, -1) @ values
        return self.out(attention_output.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, fused: bool, causal: bool = False) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, max(width // 64, 1), fused, causal)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


def transformer(width: int, depth: int, fused: bool = True, causal: bool = False) -> nn.Module:
    return nn.Sequential(*(Block(width, fused, causal) for _ in range(depth)))


def train(model: nn.Module, batches, optimizer=None, each=None) -> None:
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=1e-3)
    for step, (inputs, targets) in enumerate(batches):
        optimizer.zero_grad()
        output = model(inputs)
        loss = F.cross_entropy(output.flatten(0, -2), targets) if targets is not None else output.square().mean()
        loss.backward()
        optimizer.step()
        if each is not None:
            each(step, model)


def repeat_batch(inputs: torch.Tensor, targets, steps: int):
    return ((inputs, targets) for _ in range(steps))


class ImageDataset(torch.utils.data.Dataset):
    """Images that are prepared again each time, or once."""

    def __init__(self, count: int, size: int, epochs: int, once: bool) -> None:
        self.length, self.count, self.size = count * epochs, count, size
        self.prepared = [self.prepare(index) for index in range(count)] if once else None

    def prepare(self, index: int) -> tuple[torch.Tensor, int]:
        generator = torch.Generator().manual_seed(index)
        image = torch.rand(3, 2 * self.size, 2 * self.size, generator=generator)
        image = F.interpolate(image[None], (self.size, self.size), mode="bicubic", antialias=True)[0]
        return (image - image.mean()) / image.std(), index % 10

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        index %= self.count
        return self.prepared[index] if self.prepared else self.prepare(index)


class SentenceDataset(torch.utils.data.Dataset):
    """Text that is split into words and looked up again each time, or once."""

    def __init__(self, count: int, words: int, epochs: int, once: bool) -> None:
        self.length, self.count = count * epochs, count
        self.texts = [" ".join(f"w{(7 * i + 13 * j) % 5000}" for j in range(words)) for i in range(count)]
        self.vocabulary = {f"w{i}": i for i in range(5000)}
        self.prepared = [self.prepare(index) for index in range(count)] if once else None

    def prepare(self, index: int) -> tuple[torch.Tensor, int]:
        tokens = [self.vocabulary.get(word.strip().lower(), 0) for word in self.texts[index].split(" ")]
        return torch.tensor(tokens), index % 10

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        index %= self.count
        return self.prepared[index] if self.prepared else self.prepare(index)


def data_loading(fixed: bool, steps: int) -> None:
    epochs = 8
    data = ImageDataset(steps * 16 // epochs, 96, epochs, once=fixed)
    train(convnet(4), torch.utils.data.DataLoader(data, 16))


def data_loading_text(fixed: bool, steps: int) -> None:
    epochs = 5
    data = SentenceDataset(steps * 32 // epochs, 2000, epochs, once=fixed)
    model = nn.Sequential(nn.EmbeddingBag(5000, 64), nn.Linear(64, 10))
    train(model, torch.utils.data.DataLoader(data, 32))


def unfused_optimizer(fixed: bool, steps: int) -> None:
    model = mlp(1024, 6)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=fixed)
    train(model, repeat_batch(torch.randn(32, 1024), torch.randint(0, 10, (32,)), steps), optimizer)


def unfused_optimizer_embedding(fixed: bool, steps: int) -> None:
    model = nn.Sequential(nn.Embedding(30000, 128), *(Block(128, True) for _ in range(2)), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters(), 1e-4, fused=fixed)
    train(model, repeat_batch(torch.randint(0, 30000, (8, 64)), torch.randint(0, 10, (8 * 64,)), steps), optimizer)


def unfused_attention(fixed: bool, steps: int) -> None:
    train(transformer(128, 2, fused=fixed), repeat_batch(torch.randn(4, 512, 128), None, steps))


def unfused_attention_causal(fixed: bool, steps: int) -> None:
    model = transformer(192, 2, fused=fixed, causal=True).eval()
    x = torch.randn(4, 768, 192)
    with torch.no_grad():
        for _ in range(steps):
            model(x)


def unfused_attention_encoder(fixed: bool, steps: int) -> None:
    model = nn.Sequential(nn.Linear(16, 64), *(Attention(64, 2, fused=fixed) for _ in range(3)), nn.Linear(64, 10))
    labels = torch.randint(0, 10, (2 * 1024,))
    train(model, repeat_batch(torch.randn(2, 1024, 16), labels, steps))


def small_operations(fixed: bool, steps: int) -> None:
    """The same items in batches of 4 or 64."""
    batch = 64 if fixed else 4
    x, labels = torch.randn(batch, 64), torch.randint(0, 10, (batch,))
    train(mlp(64, 8), repeat_batch(x, labels, steps * 64 // batch))


def small_operations_recurrent(fixed: bool, steps: int) -> None:
    batch = 32 if fixed else 2
    model = nn.ModuleList([nn.GRUCell(32, 64), nn.Linear(64, 10)])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, labels = torch.randn(batch, 20, 32), torch.randint(0, 10, (batch,))
    for _ in range(steps * 32 // batch):
        optimizer.zero_grad()
        state = torch.zeros(batch, 64)
        for position in range(20):
            state = model[0](x[:, position], state)
        F.cross_entropy(model[1](state), labels).backward()
        optimizer.step()


def evaluation(fixed: bool, steps: int) -> None:
    x, labels = torch.randn(64, 256), torch.randint(0, 10, (64,))
    model = mlp(256, 6)

    def each(step: int, model: nn.Module) -> None:
        if (step + 1) % (40 if fixed else 10):
            return
        model.eval()
        with torch.no_grad():
            for _ in range(20):
                model(x).argmax(-1).eq(labels).float().mean().item()
        model.train()

    train(model, repeat_batch(x, labels, steps), each=each)


def evaluation_convnet(fixed: bool, steps: int) -> None:
    x, labels = torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,))
    model = convnet(8)

    def each(step: int, model: nn.Module) -> None:
        if (step + 1) % (50 if fixed else 5):
            return
        model.eval()
        with torch.no_grad():
            sum(F.cross_entropy(model(x), labels).item() for _ in range(15))
        model.train()

    train(model, repeat_batch(x, labels, steps), each=each)


def checkpoint(fixed: bool, steps: int) -> None:
    model = mlp(512, 6)
    x, labels = torch.randn(16, 512), torch.randint(0, 10, (16,))
    with tempfile.TemporaryDirectory() as folder:

        def each(step: int, model: nn.Module) -> None:
            if step % (50 if fixed else 2) == 0:
                torch.save(model.state_dict(), f"{folder}/model.pt")

        train(model, repeat_batch(x, labels, steps), each=each)


def checkpoint_optimizer(fixed: bool, steps: int) -> None:
    model = transformer(128, 3)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    with tempfile.TemporaryDirectory() as folder:

        def each(step: int, model: nn.Module) -> None:
            if step % (100 if fixed else 4) == 0:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, f"{folder}/model.pt")

        train(model, repeat_batch(torch.randn(2, 64, 128), None, steps), optimizer, each=each)


def healthy_convnet(fixed: bool, steps: int) -> None:
    train(torch.compile(convnet(32)), repeat_batch(torch.randn(16, 3, 48, 48), torch.randint(0, 10, (16,)), steps))


def healthy_mlp(fixed: bool, steps: int) -> None:
    train(mlp(1024, 4), repeat_batch(torch.randn(512, 1024), torch.randint(0, 10, (512,)), steps))


def healthy_transformer(fixed: bool, steps: int) -> None:
    train(transformer(256, 2), repeat_batch(torch.randn(8, 128, 256), None, steps))


def healthy_inference(fixed: bool, steps: int) -> None:
    model, x = mlp(1024, 4).eval(), torch.randn(256, 1024)
    with torch.no_grad():
        for _ in range(steps):
            model(x)


def healthy_loader(fixed: bool, steps: int) -> None:
    data = torch.utils.data.TensorDataset(torch.randn(256, 3, 40, 40), torch.randint(0, 10, (256,)))
    loader = torch.utils.data.DataLoader(data, 16)
    model, count = nn.Sequential(nn.Flatten(), nn.Linear(4800, 1024), mlp(1024, 2)), 0
    while count < steps:
        train(model, loader)
        count += len(loader)


# Case: its program and its steps, for about ten seconds.
CASES = {
    "data_loading": (data_loading, 160),
    "unfused_optimizer": (unfused_optimizer, 150),
    "unfused_attention": (unfused_attention, 40),
    "unfused_attention_causal": (unfused_attention_causal, 50),
    "small_operations": (small_operations, 120),
    "evaluation": (evaluation, 400),
    "checkpoint": (checkpoint, 200),
    "data_loading_text": (data_loading_text, 200),
    "unfused_optimizer_embedding": (unfused_optimizer_embedding, 150),
    "unfused_attention_encoder": (unfused_attention_encoder, 30),
    "small_operations_recurrent": (small_operations_recurrent, 40),
    "evaluation_convnet": (evaluation_convnet, 200),
    "checkpoint_optimizer": (checkpoint_optimizer, 200),
    "healthy_convnet": (healthy_convnet, 60),
    "healthy_mlp": (healthy_mlp, 100),
    "healthy_transformer": (healthy_transformer, 60),
    "healthy_inference": (healthy_inference, 80),
    "healthy_loader": (healthy_loader, 80),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=sorted(CASES))
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--steps", type=int)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)  # threads that wait for a processor spin: other load would change the energy of a step
    program, steps = CASES[options.case]
    program(options.fixed, options.steps or steps)


if __name__ == "__main__":
    sys.exit(main())
