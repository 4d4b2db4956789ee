#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs with GPU usage that has broken captures before. survival.py runs each alone and recorded.

gpu_programs.py NAME        prints a checksum of the trained network as its last line
"""

from __future__ import annotations

import hashlib
import os
import sys

import torch
from torch import nn

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.norm(self.conv(x))
        y += x
        return self.relu(y)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 3, padding=1)
        self.layers = nn.Sequential(*[Block(64) for _ in range(4)])
        self.fc = nn.Linear(64, 10)
        self.uses_checkpointing = False

    def forward(self, x):
        x = self.stem(x)
        if self.uses_checkpointing:
            from torch.utils.checkpoint import checkpoint

            x = checkpoint(self.layers, x, use_reentrant=False)
        else:
            x = self.layers(x)
        return self.fc(x.mean((2, 3)))


def network() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    return Net().cuda(), torch.randn(64, 3, 64, 64, device="cuda"), torch.randint(0, 10, (64,), device="cuda")


def train(net: nn.Module, x, y, steps: int = 60, forward=None, precision=None) -> torch.Tensor:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    call = net if forward is None else forward
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=precision or torch.bfloat16, enabled=precision is not None):
            loss = nn.functional.cross_entropy(call(x), y)
        loss.backward()
        optimizer.step()
    return loss


def checksum(net: nn.Module) -> str:
    state = b"".join(value.detach().cpu().float().numpy().tobytes() for value in net.state_dict().values())
    return hashlib.sha256(state).hexdigest()[:16]


def plain() -> None:
    net, x, y = network()
    train(net, x, y)
    print(checksum(net))


def amp_channels_last() -> None:
    net, x, y = network()
    net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    train(net, x, y, precision=torch.bfloat16)
    print(checksum(net))


def train_with_checkpointing() -> None:
    net, x, y = network()
    net.uses_checkpointing = True
    train(net, x, y)
    print(checksum(net))


def compiled() -> None:
    net, x, y = network()
    train(net, x, y, forward=torch.compile(net, backend="aot_eager"))
    print(checksum(net))


def profiled() -> None:
    """Runs torch.profiler in the middle of the training: it takes over CUPTI's callbacks and clock."""
    from torch.profiler import ProfilerActivity, profile

    net, x, y = network()
    train(net, x, y, 100)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as session:
        train(net, x, y, 20)
        torch.cuda.synchronize()
    kernels = sum("conv" in event.key or "gemm" in event.key for event in session.key_averages())
    print("profiler kernels", kernels > 0)
    train(net, x, y, 2000)
    print(checksum(net))


def graphs() -> None:
    """Replays a whole forward and backward pass as one CUDA graph."""
    net, x, y = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        train(net, x, y, 3)
    torch.cuda.current_stream().wait_stream(side)
    optimizer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
    for _ in range(60):
        graph.replay()
        optimizer.step()
    torch.cuda.synchronize()
    print(checksum(net))


def run_on_side_stream() -> None:
    net, x, y = network()
    side = torch.cuda.Stream()
    for _ in range(40):
        with torch.cuda.stream(side), torch.no_grad():
            net.eval()(x)
        net.train()
        train(net, x, y, 1)
    torch.cuda.synchronize()
    print(checksum(net))


class NumberDataset(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 512

    def __getitem__(self, index: int):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(3, 64, 64, generator=generator), index % 10


def loader(context: str) -> None:
    net, _, _ = network()
    batches = torch.utils.data.DataLoader(
        NumberDataset(), batch_size=64, num_workers=2, pin_memory=True, multiprocessing_context=context
    )
    for _ in range(2):
        for x, y in batches:
            train(net, x.cuda(non_blocking=True), y.cuda(), 1)
    print(checksum(net))


def exit_without_handlers() -> None:
    """Exits without running any handler."""
    net, x, y = network()
    train(net, x, y, 100)
    print(checksum(net), flush=True)
    os._exit(3)


def terminate_by_signal() -> None:
    import signal

    net, x, y = network()
    train(net, x, y, 600)  # at most the last second of the recording is lost
    print(checksum(net), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)


def raise_shape_error() -> None:
    net, x, y = network()
    train(net, x, y, 60)
    print(checksum(net), flush=True)
    net(x[:, :2])


def jax_training() -> None:
    """A convnet with scopes named as in flax, without flax."""
    import jax
    import jax.numpy as jnp

    def net(params, x):
        for index in range(4):
            with jax.named_scope(f"dense_{index}"):
                x = jnp.tanh(x @ params[index])
        with jax.named_scope("head"):
            return x @ params[4]

    def loss(params, x, y):
        return jnp.mean((net(params, x) - y) ** 2)

    @jax.jit
    def step(params, x, y):
        gradients = jax.grad(loss)(params, x, y)
        return [p - 0.01 * g for p, g in zip(params, gradients)]

    keys = jax.random.split(jax.random.PRNGKey(0), 5)
    params = [jax.random.normal(key, (2048, 2048 if index < 4 else 16)) * 0.02 for index, key in enumerate(keys)]
    x, y = jnp.ones((4096, 2048)), jnp.ones((4096, 16))
    for _ in range(1000):
        params = step(params, x, y)
    total = float(sum(jnp.sum(jnp.abs(p)) for p in params))
    print(total.hex())


PROGRAMS = {
    "plain": plain, "amp_channels_last": amp_channels_last, "checkpointing": train_with_checkpointing, "compiled": compiled,
    "profiled": profiled, "graphs": graphs, "streams": run_on_side_stream, "loader_fork": lambda: loader("fork"),
    "loader_spawn": lambda: loader("spawn"), "leaves": exit_without_handlers, "terminated": terminate_by_signal,
    "raises": raise_shape_error, "jax": jax_training,
}  # fmt: skip

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
