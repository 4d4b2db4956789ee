#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training and inference programs as people write them. user_programs.py runs each alone and recorded.

    user_program_set.py NAME [--seconds S]

Each program trains or serves for about S seconds after its warm-up and prints one line of JSON at the end: a checksum of
what it computed in its first steps, the median step time and the number of steps. Weights and data are random; sizes are chosen for one large
GPU. Nothing here knows of Joulemap except `attach`.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import statistics
import tempfile
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_deterministic_ops=true")

# The checksum covers a fixed number of steps, so that a slower run computes the same.
CHECKED_STEPS = 8


class Loop:
    """Yields steps until the time is over, keeps their durations, and takes the checksum after CHECKED_STEPS."""

    def __init__(self, seconds: float, checksum) -> None:
        self.seconds, self.checksum = seconds, checksum
        self.digest, self.durations_s = None, []

    def __iter__(self):
        began = previous = time.perf_counter()
        for step in itertools.count():
            if step == CHECKED_STEPS:
                self.digest = self.checksum()
                began = previous = time.perf_counter()
            if step > CHECKED_STEPS:
                now = time.perf_counter()
                self.durations_s.append(now - previous)
                previous = now
                if now - began > self.seconds:
                    return
            yield step

    def print(self) -> None:
        median_s = statistics.median(self.durations_s) if self.durations_s else None
        print(json.dumps({"checksum": self.digest, "step_s": median_s, "steps": len(self.durations_s)}), flush=True)


def of_tensors(tensors) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def of_module(module):
    return lambda: of_tensors(module.state_dict().values())


def torch_set_up():
    import torch

    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cuda.matmul.allow_tf32 = True
    return torch


def llama(torch, width: int, layers: int, heads: int, vocabulary: int = 32000):
    """A Llama-shaped decoder in plain PyTorch: RMSNorm, rotary positions, SwiGLU."""
    nn, functional = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(width, 3 * width, bias=False)
            self.out = nn.Linear(width, width, bias=False)

        def forward(self, x, cos, sin):
            batch, length, _ = x.shape
            q, k, v = self.qkv(x).view(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            q, k = (turned * cos + torch.cat((-turned[..., 1::2], turned[..., ::2]), -1) * sin for turned in (q, k))
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(batch, length, width))

    class FeedForward(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.up = (nn.Linear(width, 4 * width, bias=False) for _ in range(2))
            self.down = nn.Linear(4 * width, width, bias=False)

        def forward(self, x):
            return self.down(functional.silu(self.gate(x)) * self.up(x))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
            self.attention, self.feed_forward = Attention(), FeedForward()

        def forward(self, x, cos, sin):
            x = x + self.attention(self.norm1(x), cos, sin)
            return x + self.feed_forward(self.norm2(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(vocabulary, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm = nn.RMSNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)

        def forward(self, tokens):
            length, size = tokens.shape[1], width // heads
            angles = torch.arange(length, device=tokens.device)[:, None] * 0.01 ** (
                torch.arange(size, device=tokens.device) / size
            )
            x = self.embed(tokens)
            cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
            for block in self.blocks:
                x = block(x, cos, sin)
            return self.head(self.norm(x))

    return Model()


def train_llama(seconds: float, width: int, layers: int, batch: int, length: int) -> None:
    torch = torch_set_up()
    model = llama(torch, width, layers, width // 64).cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randint(0, 32000, (batch, length + 1), device="cuda")
    loop = Loop(seconds, of_module(model))
    for _ in loop:
        loss = torch.nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1).float(), tokens[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
    loop.print()


def small_llm_training(seconds: float) -> None:
    train_llama(seconds, width=512, layers=8, batch=8, length=512)


def large_llm_training(seconds: float) -> None:
    train_llama(seconds, width=2048, layers=12, batch=8, length=1024)


def small_llm_inference(seconds: float) -> None:
    torch = torch_set_up()
    model = llama(torch, 512, 8, 8).cuda().bfloat16().eval()
    tokens = torch.randint(0, 32000, (8, 512), device="cuda")
    logits = None
    loop = Loop(seconds, lambda: of_tensors([logits]))
    with torch.inference_mode():
        for _ in loop:
            logits = model(tokens)
            logits[:, -1].argmax(-1).tolist()
    loop.print()


def hf_llama(torch, hidden: int, layers: int):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=hidden, intermediate_size=int(2.75 * hidden) // 64 * 64, num_hidden_layers=layers,
        num_attention_heads=hidden // 64, num_key_value_heads=max(1, hidden // 256), vocab_size=32000, max_position_embeddings=2048,
    )
    return LlamaForCausalLM(config).to(torch.bfloat16).cuda()


def transformers_llm_training(seconds: float) -> None:
    torch = torch_set_up()
    model = hf_llama(torch, 1024, 12)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, 32000, (8, 512), device="cuda")
    loop = Loop(seconds, of_module(model))
    for _ in loop:
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    loop.print()


def large_llm_inference(seconds: float) -> None:
    torch = torch_set_up()
    model = hf_llama(torch, 4096, 16).eval()
    tokens = torch.randint(0, 32000, (8, 1024), device="cuda")
    logits = None
    loop = Loop(seconds, lambda: of_tensors([logits[:, -1]]))
    with torch.inference_mode():
        for _ in loop:
            logits = model(input_ids=tokens).logits
            logits[:, -1].argmax(-1).tolist()
    loop.print()


def generate(seconds: float) -> None:
    torch = torch_set_up()
    model = hf_llama(torch, 1024, 12).eval()
    prompt = torch.randint(0, 32000, (4, 64), device="cuda")
    tokens = None
    loop = Loop(seconds, lambda: of_tensors([tokens]))
    with torch.inference_mode():
        for _ in loop:
            tokens = model.generate(
                prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=16, do_sample=False, pad_token_id=0
            )
    loop.print()


class Pictures:
    """A data set that decodes and augments on the CPU, as image training does."""

    def __init__(self, count: int, size: int) -> None:
        self.count, self.size = count, size

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int):
        import torch

        random = torch.Generator().manual_seed(index)
        picture = torch.randint(0, 256, (3, self.size + 32, self.size + 32), generator=random, dtype=torch.uint8)
        picture = picture[:, 16 : 16 + self.size, 16 : 16 + self.size].float().div(255)
        return (picture - 0.45) / 0.22, index % 100


def image_training(seconds: float, architecture: str, compiled: bool) -> None:
    torch = torch_set_up()
    import torchvision

    model = getattr(torchvision.models, architecture)(num_classes=100).cuda().to(memory_format=torch.channels_last)
    call = torch.compile(model) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    loaders = {
        name: torch.utils.data.DataLoader(
            Pictures(count, 224), batch_size=64, num_workers=4, pin_memory=True, persistent_workers=True, shuffle=name == "train",
            generator=torch.Generator().manual_seed(1),
        )
        for name, count in (("train", 1024), ("validation", 256))
    }
    loop = Loop(seconds, of_module(model))
    steps = iter(loop)
    with tempfile.TemporaryDirectory() as folder:
        for epoch in itertools.count():
            model.train()
            for pictures, labels in loaders["train"]:
                if next(steps, None) is None:
                    return loop.print()
                pictures = pictures.cuda(non_blocking=True).to(memory_format=torch.channels_last)
                with torch.autocast("cuda", dtype=torch.float16):
                    loss = torch.nn.functional.cross_entropy(call(pictures), labels.cuda(non_blocking=True))
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
            model.eval()
            right = 0
            with torch.no_grad():
                for pictures, labels in loaders["validation"]:
                    right += (call(pictures.cuda()).argmax(1) == labels.cuda()).sum().item()
            torch.save({"model": model.state_dict(), "epoch": epoch, "right": right}, f"{folder}/last.pt")


def efficientnet_amp(seconds: float) -> None:
    image_training(seconds, "efficientnet_b0", compiled=False)


def compiled_resnet(seconds: float) -> None:
    image_training(seconds, "resnet18", compiled=True)


def unet(seconds: float) -> None:
    torch = torch_set_up()
    nn = torch.nn

    def double(narrow: int, wide: int):
        return nn.Sequential(
            nn.Conv2d(narrow, wide, 3, padding=1), nn.BatchNorm2d(wide), nn.ReLU(inplace=True),
            nn.Conv2d(wide, wide, 3, padding=1), nn.BatchNorm2d(wide), nn.ReLU(inplace=True),
        )

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            widths = [32, 64, 128, 256]
            self.down = nn.ModuleList(double(a, b) for a, b in zip([3, *widths], widths))
            self.bottom = double(256, 512)
            self.turn = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in reversed(widths))
            self.up = nn.ModuleList(double(2 * w, w) for w in reversed(widths))
            self.head = nn.Conv2d(32, 2, 1)

        def forward(self, x):
            kept = []
            for block in self.down:
                kept.append(block(x))
                x = nn.functional.max_pool2d(kept[-1], 2)
            x = self.bottom(x)
            for turn, block in zip(self.turn, self.up):
                x = block(torch.cat((turn(x), kept.pop()), 1))
            return self.head(x)

    model = UNet().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    pictures = torch.randn(16, 3, 256, 256, device="cuda")
    masks = (torch.rand(16, 2, 256, 256, device="cuda") > 0.5).float()  # cross entropy of labels is not deterministic in 2D
    loop = Loop(seconds, of_module(model))
    for _ in loop:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(pictures), masks)
        loss.backward()
        optimizer.step()
        loss.item()
    loop.print()


def gan(seconds: float) -> None:
    torch = torch_set_up()
    nn = torch.nn
    maker = nn.Sequential(
        nn.ConvTranspose2d(100, 256, 4), nn.BatchNorm2d(256), nn.ReLU(True),
        nn.ConvTranspose2d(256, 128, 4, 2, 1), nn.BatchNorm2d(128), nn.ReLU(True),
        nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.BatchNorm2d(64), nn.ReLU(True),
        nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh(),
    ).cuda()
    judge = nn.Sequential(
        nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(64, 128, 4, 2, 1), nn.BatchNorm2d(128), nn.LeakyReLU(0.2),
        nn.Conv2d(128, 256, 4, 2, 1), nn.BatchNorm2d(256), nn.LeakyReLU(0.2), nn.Conv2d(256, 1, 4), nn.Flatten(),
    ).cuda()
    of_maker = torch.optim.Adam(maker.parameters(), lr=2e-4, betas=(0.5, 0.999))
    of_judge = torch.optim.Adam(judge.parameters(), lr=2e-4, betas=(0.5, 0.999))
    real = torch.randn(256, 3, 32, 32, device="cuda")
    ones, zeros = torch.ones(256, 1, device="cuda"), torch.zeros(256, 1, device="cuda")
    criterion = nn.BCEWithLogitsLoss()
    loop = Loop(seconds, of_module(maker))
    for _ in loop:
        made = maker(torch.randn(256, 100, 1, 1, device="cuda"))
        of_judge.zero_grad()
        loss = criterion(judge(real), ones) + criterion(judge(made.detach()), zeros)
        loss.backward()
        of_judge.step()
        of_maker.zero_grad()
        criterion(judge(made), ones).backward()
        of_maker.step()
        loss.item()
    loop.print()


def gradient_accumulation(seconds: float) -> None:
    torch = torch_set_up()
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True)
    model = nn.Sequential(nn.Linear(64, 768), nn.TransformerEncoder(layer, 6), nn.Linear(768, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    batches = [(torch.randn(16, 128, 64, device="cuda"), torch.randn(16, 128, 10, device="cuda")) for _ in range(4)]
    loop = Loop(seconds, of_module(model))
    for _ in loop:
        for inputs, targets in batches:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = nn.functional.mse_loss(model(inputs), targets) / len(batches)
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    loop.print()


def attach(seconds: float) -> None:
    torch = torch_set_up()
    import torchvision

    model = torchvision.models.resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    pictures, labels = torch.randn(64, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (64,), device="cuda")
    target = os.environ.get("JOULEMAP_ATTACH_TO")
    run = None
    if target:
        import joulemap

        run = joulemap.attach(model, optimizer=optimizer, file=target)
    loop = Loop(seconds, of_module(model))
    for _ in loop:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(pictures), labels)
        loss.backward()
        optimizer.step()
    if run is not None:
        run.detach()
    loop.print()


def lightning(seconds: float) -> None:
    torch = torch_set_up()
    import pytorch_lightning
    import torchvision

    class Classifier(pytorch_lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = torchvision.models.resnet18(num_classes=100)
            self.loop = Loop(seconds, of_module(self.network))
            self.steps = iter(self.loop)

        def training_step(self, batch, index):
            if next(self.steps, None) is None:
                self.trainer.should_stop = True
            loss = torch.nn.functional.cross_entropy(self.network(batch[0]), batch[1])
            self.log("loss", loss)
            return loss

        def validation_step(self, batch, index):
            self.log("right", (self.network(batch[0]).argmax(1) == batch[1]).float().mean())

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    loaders = [
        torch.utils.data.DataLoader(Pictures(count, 128), batch_size=64, num_workers=2, persistent_workers=True)
        for count in (1280, 128)
    ]
    model = Classifier()
    with tempfile.TemporaryDirectory() as folder:
        pytorch_lightning.Trainer(
            max_epochs=100, precision="bf16-mixed", default_root_dir=folder, enable_progress_bar=False, logger=False,
            enable_model_summary=False, num_sanity_val_steps=0, min_epochs=1,
        ).fit(model, *loaders)
    model.loop.print()


def trainer(seconds: float) -> None:
    torch = torch_set_up()
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

    model = BertForSequenceClassification(BertConfig(num_hidden_layers=6, hidden_size=512, num_attention_heads=8))
    rows = [
        {"input_ids": torch.randint(0, 30000, (128,)), "attention_mask": torch.ones(128, dtype=torch.long), "labels": index % 2}
        for index in range(2048)
    ]
    loop = Loop(seconds, of_module(model))
    steps = iter(loop)

    class Stop(TrainerCallback):
        def on_step_begin(self, arguments, state, control, **_):
            control.should_training_stop = next(steps, None) is None

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, per_device_train_batch_size=32, num_train_epochs=1000, bf16=True, report_to=[], save_strategy="no",
            logging_steps=10, disable_tqdm=True,
        )
        Trainer(model, arguments, train_dataset=rows, callbacks=[Stop()]).train()
    loop.print()


def jax(seconds: float) -> None:
    import jax.numpy as jnp
    import numpy

    import jax as jaxlib

    keys = jaxlib.random.split(jaxlib.random.PRNGKey(0), 6)
    weights = [jaxlib.random.normal(key, (2048, 2048), jnp.bfloat16) * 0.02 for key in keys]
    inputs = jaxlib.random.normal(keys[0], (4096, 2048), jnp.bfloat16)

    def loss_of(weights, inputs):
        x = inputs
        for index, weight in enumerate(weights):
            with jaxlib.named_scope(f"layer{index}"):
                x = jaxlib.nn.gelu(x @ weight)
        return jnp.mean((x - inputs).astype(jnp.float32) ** 2)

    @jaxlib.jit
    def step(weights, inputs):
        loss, gradients = jaxlib.value_and_grad(loss_of)(weights, inputs)
        return [weight - 0.01 * gradient for weight, gradient in zip(weights, gradients)], loss

    loop = Loop(seconds, lambda: hashlib.sha256(numpy.asarray(weights[0]).tobytes()).hexdigest()[:16])
    for _ in loop:
        weights, loss = step(weights, inputs)
        float(loss)
    loop.print()


PROGRAMS = {
    function.__name__: function
    for function in (
        small_llm_training, small_llm_inference, large_llm_training, large_llm_inference, transformers_llm_training, generate,
        efficientnet_amp, compiled_resnet, unet, gan, gradient_accumulation, attach, lightning, trainer, jax,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=sorted(PROGRAMS))
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    PROGRAMS[options.name](options.seconds)


if __name__ == "__main__":
    main()
