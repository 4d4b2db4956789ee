# SPDX-License-Identifier: Apache-2.0
"""Trains a small network with PyTorch under its own profiler, three steps: traced_torch.py TRACE.json."""

import sys

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(torch.relu(self.conv(x)).mean((2, 3)))


torch.manual_seed(7)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.01)
x, y = torch.rand(32, 3, 16, 16), torch.randint(10, (32,))
with profile(activities=[ProfilerActivity.CPU], with_stack=True, schedule=schedule(wait=0, warmup=1, active=3),
             on_trace_ready=lambda result: result.export_chrome_trace(sys.argv[1])) as profiler:
    for _ in range(4):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
        profiler.step()
