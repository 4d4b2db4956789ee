# SPDX-License-Identifier: Apache-2.0
"""Further programs of user_program_set.py, which no part of Joulemap was tuned with: a vision transformer with a learning
rate schedule, policy gradients, a diffusion model with averaged weights, speech with CTC, and a graph network."""

from __future__ import annotations

import copy
import math

from user_program_loop import TimedLoop, checksum_of_module, set_up_torch


def vision_transformer(seconds: float) -> None:
    """Fine-tuning: a frozen start, a schedule, clipping, accuracy with .item() every few steps."""
    torch = set_up_torch()
    import torchvision

    model = torchvision.models.vit_b_16(num_classes=100).cuda()
    for parameter in model.conv_proj.parameters():
        parameter.requires_grad_(False)
    optimizer = torch.optim.AdamW(
        [trainable_parameter for trainable_parameter in model.parameters() if trainable_parameter.requires_grad],
        lr=1e-4,
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
    pictures = torch.utils.data.TensorDataset(torch.randn(512, 3, 224, 224), torch.randint(0, 100, (512,)))
    loader = torch.utils.data.DataLoader(
        pictures, batch_size=32, num_workers=2, pin_memory=True, persistent_workers=True
    )
    loop = TimedLoop(seconds, checksum_of_module(model))
    steps = iter(loop)
    while True:
        for images, labels in loader:
            step = next(steps, None)
            if step is None:
                return loop.print()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                logits = model(images.cuda(non_blocking=True))
                loss = torch.nn.functional.cross_entropy(logits, labels.cuda(non_blocking=True))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            if step % 5 == 0:
                loss.item()


def policy_gradient(seconds: float) -> None:
    """Reinforcement learning: an environment in Python, the policy called for each action, one update an episode."""
    torch = set_up_torch()
    policy = torch.nn.Sequential(torch.nn.Linear(4, 256), torch.nn.Tanh(), torch.nn.Linear(256, 256), torch.nn.Tanh(),
                                 torch.nn.Linear(256, 2)).cuda()  # fmt: skip
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    loop = TimedLoop(seconds, checksum_of_module(policy))
    for _ in loop:
        state, log_probabilities, rewards = [0.01, 0.0, 0.02, 0.0], [], []
        for _ in range(40):
            choice = torch.distributions.Categorical(logits=policy(torch.tensor(state, device="cuda")))
            action = choice.sample()
            log_probabilities.append(choice.log_prob(action))
            force = 10.0 if action.item() == 1 else -10.0
            angle_rate = state[3] + 0.02 * (9.8 * math.sin(state[2]) - force * math.cos(state[2]))
            state = [state[0] + 0.02 * state[1], state[1] + 0.02 * force, state[2] + 0.02 * angle_rate, angle_rate]
            rewards.append(math.cos(state[2]))
        returns = torch.tensor(rewards, device="cuda").flip(0).cumsum(0).flip(0)
        loss = -(torch.stack(log_probabilities) * (returns - returns.mean())).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    loop.print()


def diffusion(seconds: float) -> None:
    """A noise predictor with an exponential moving average of its weights."""
    torch = set_up_torch()
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.norm, self.time = nn.GroupNorm(8, channels), nn.Linear(64, channels)
            self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))

        def forward(self, x, time):
            hidden_features = self.first(nn.functional.silu(self.norm(x))) + self.time(time)[:, :, None, None]
            return x + self.second(nn.functional.silu(hidden_features))

    class Predictor(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.entry, self.exit = nn.Conv2d(3, 128, 3, padding=1), nn.Conv2d(128, 3, 3, padding=1)
            self.blocks = nn.ModuleList(Block(128) for _ in range(8))

        def forward(self, x, time):
            x = self.entry(x)
            for block in self.blocks:
                x = block(x, time)
            return self.exit(x)

    model = Predictor().cuda()
    average = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
    clean = torch.randn(32, 3, 32, 32, device="cuda")
    frequencies = torch.exp(torch.linspace(0, 5, 32, device="cuda"))
    loop = TimedLoop(seconds, checksum_of_module(model))
    for _ in loop:
        level = torch.rand(len(clean), device="cuda")
        phase = level[:, None] * frequencies
        noise = torch.randn_like(clean)
        noisy = (1 - level)[:, None, None, None] * clean + level[:, None, None, None] * noise
        loss = nn.functional.mse_loss(model(noisy, torch.cat([phase.sin(), phase.cos()], 1)), noise)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mean, model_parameter in zip(average.parameters(), model.parameters()):
                mean.lerp_(model_parameter, 0.01)
    loop.print()


def speech(seconds: float) -> None:
    """A recurrent network with CTC on batches of different lengths."""
    torch = set_up_torch()
    nn = torch.nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.front = nn.Conv1d(80, 256, 5, stride=2, padding=2)
            self.recurrent = nn.GRU(256, 384, 3, bidirectional=True, batch_first=True)
            self.head = nn.Linear(768, 64)

        def forward(self, spectrogram):
            return self.head(self.recurrent(self.front(spectrogram).relu().transpose(1, 2))[0]).log_softmax(-1)

    model = Network().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    loop = TimedLoop(seconds, checksum_of_module(model))
    for step in loop:
        length = 200 + 100 * (step % 4)
        spectrogram = torch.randn(16, 80, length, device="cuda")
        words = torch.randint(1, 64, (16, 30), device="cuda")
        output = model(spectrogram).transpose(0, 1)
        lengths = torch.full((16,), output.shape[0]), torch.full((16,), 30)
        loss = nn.functional.ctc_loss(output, words, *lengths)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    loop.print()


def graph_network(seconds: float) -> None:
    """Full-batch training of a graph convolution with gathers and scatters."""
    torch = set_up_torch()
    nn = torch.nn

    class Layer(nn.Module):
        def __init__(self, before: int, after: int) -> None:
            super().__init__()
            self.own, self.others = nn.Linear(before, after), nn.Linear(before, after)

        def forward(self, nodes, edges):
            messages = torch.zeros_like(nodes).index_add_(0, edges[1], nodes[edges[0]])
            return self.own(nodes) + self.others(messages)

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([Layer(128, 256), Layer(256, 256), Layer(256, 40)])

        def forward(self, nodes, edges):
            for layer in self.layers[:-1]:
                nodes = layer(nodes, edges).relu()
            return self.layers[-1](nodes, edges)

    model = Network().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    nodes, labels = torch.randn(20_000, 128, device="cuda"), torch.randint(0, 40, (20_000,), device="cuda")
    edges = torch.randint(0, 20_000, (2, 200_000), device="cuda")
    loop = TimedLoop(seconds, checksum_of_module(model))
    for step in loop:
        model.train()
        loss = nn.functional.cross_entropy(model(nodes, edges)[:16_000], labels[:16_000])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            model.eval()
            with torch.no_grad():
                (model(nodes, edges)[16_000:].argmax(1) == labels[16_000:]).float().mean().item()
    loop.print()
