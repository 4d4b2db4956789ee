# SPDX-License-Identifier: Apache-2.0
"""Image networks of user_program_set.py, and others: AMP, DataLoader, compiled, U-Net, GAN, Lightning, jm.attach, JAX."""

from __future__ import annotations

import hashlib
import itertools
import os
import tempfile

from user_program_loop import TimedLoop, checksum_of_module, set_up_torch


class PictureDataset:
    """A data set that decodes and augments on the CPU, as in real training on images."""

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
    torch = set_up_torch()
    import torchvision

    model = getattr(torchvision.models, architecture)(num_classes=100).cuda().to(memory_format=torch.channels_last)
    call = torch.compile(model) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    loaders = {
        name: torch.utils.data.DataLoader(
            PictureDataset(count, 224),
            batch_size=64,
            num_workers=4,
            pin_memory=True,
            persistent_workers=True,
            shuffle=name == "train",
            generator=torch.Generator().manual_seed(1),
        )
        for name, count in (("train", 1024), ("validation", 256))
    }
    loop = TimedLoop(seconds, checksum_of_module(model))
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
            correct_count = 0
            with torch.no_grad():
                for pictures, labels in loaders["validation"]:
                    correct_count += (call(pictures.cuda()).argmax(1) == labels.cuda()).sum().item()
            torch.save({"model": model.state_dict(), "epoch": epoch, "right": correct_count}, f"{folder}/last.pt")


def efficientnet_amp(seconds: float) -> None:
    image_training(seconds, "efficientnet_b0", compiled=False)


def compiled_resnet(seconds: float) -> None:
    image_training(seconds, "resnet18", compiled=True)


def unet(seconds: float) -> None:
    torch = set_up_torch()
    nn = torch.nn

    def double(in_channels: int, out_channels: int):
        return nn.Sequential(
            nn.Conv2d(in_channels, out_channels, 3, padding=1),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(out_channels, out_channels, 3, padding=1),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            widths = [32, 64, 128, 256]
            self.down = nn.ModuleList(double(a, b) for a, b in zip([3, *widths], widths))
            self.bottom = double(256, 512)
            self.turn = nn.ModuleList(
                nn.ConvTranspose2d(2 * channel_count, channel_count, 2, stride=2) for channel_count in reversed(widths)
            )
            self.up = nn.ModuleList(double(2 * channel_count, channel_count) for channel_count in reversed(widths))
            self.head = nn.Conv2d(32, 2, 1)

        def forward(self, x):
            skip_features = []
            for block in self.down:
                skip_features.append(block(x))
                x = nn.functional.max_pool2d(skip_features[-1], 2)
            x = self.bottom(x)
            for upsampling_layer, block in zip(self.turn, self.up):
                x = block(torch.cat((upsampling_layer(x), skip_features.pop()), 1))
            return self.head(x)

    model = UNet().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    pictures = torch.randn(16, 3, 256, 256, device="cuda")
    masks = (torch.rand(16, 2, 256, 256, device="cuda") > 0.5).float()  # 2D cross entropy is not deterministic
    loop = TimedLoop(seconds, checksum_of_module(model))
    for _ in loop:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(pictures), masks)
        loss.backward()
        optimizer.step()
        loss.item()
    loop.print()


def gan(seconds: float) -> None:
    torch = set_up_torch()
    nn = torch.nn
    generator_network = nn.Sequential(
        nn.ConvTranspose2d(100, 256, 4),
        nn.BatchNorm2d(256),
        nn.ReLU(True),
        nn.ConvTranspose2d(256, 128, 4, 2, 1),
        nn.BatchNorm2d(128),
        nn.ReLU(True),
        nn.ConvTranspose2d(128, 64, 4, 2, 1),
        nn.BatchNorm2d(64),
        nn.ReLU(True),
        nn.ConvTranspose2d(64, 3, 4, 2, 1),
        nn.Tanh(),
    ).cuda()
    discriminator = nn.Sequential(
        nn.Conv2d(3, 64, 4, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(64, 128, 4, 2, 1),
        nn.BatchNorm2d(128),
        nn.LeakyReLU(0.2),
        nn.Conv2d(128, 256, 4, 2, 1),
        nn.BatchNorm2d(256),
        nn.LeakyReLU(0.2),
        nn.Conv2d(256, 1, 4),
        nn.Flatten(),
    ).cuda()
    generator_optimizer = torch.optim.Adam(generator_network.parameters(), lr=2e-4, betas=(0.5, 0.999))
    discriminator_optimizer = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    real_images = torch.randn(256, 3, 32, 32, device="cuda")
    ones, zeros = torch.ones(256, 1, device="cuda"), torch.zeros(256, 1, device="cuda")
    criterion = nn.BCEWithLogitsLoss()
    loop = TimedLoop(seconds, checksum_of_module(generator_network))
    for _ in loop:
        generated_images = generator_network(torch.randn(256, 100, 1, 1, device="cuda"))
        discriminator_optimizer.zero_grad()
        loss = criterion(discriminator(real_images), ones) + criterion(discriminator(generated_images.detach()), zeros)
        loss.backward()
        discriminator_optimizer.step()
        generator_optimizer.zero_grad()
        criterion(discriminator(generated_images), ones).backward()
        generator_optimizer.step()
        loss.item()
    loop.print()


def gradient_accumulation(seconds: float) -> None:
    torch = set_up_torch()
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True)
    model = nn.Sequential(nn.Linear(64, 768), nn.TransformerEncoder(layer, 6), nn.Linear(768, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    batches = [(torch.randn(16, 128, 64, device="cuda"), torch.randn(16, 128, 10, device="cuda")) for _ in range(4)]
    loop = TimedLoop(seconds, checksum_of_module(model))
    for _ in loop:
        for inputs, targets in batches:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = nn.functional.mse_loss(model(inputs), targets) / len(batches)
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    loop.print()


def attach(seconds: float) -> None:
    torch = set_up_torch()
    import torchvision

    model = torchvision.models.resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    pictures, labels = torch.randn(64, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (64,), device="cuda")
    target = os.environ.get("JOULEMAP_ATTACH_TO")
    run = None
    if target:
        import joulemap

        run = joulemap.attach(model, optimizer=optimizer, file=target)
    loop = TimedLoop(seconds, checksum_of_module(model))
    for _ in loop:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(pictures), labels)
        loss.backward()
        optimizer.step()
    if run is not None:
        run.detach()
    loop.print()


def lightning(seconds: float) -> None:
    torch = set_up_torch()
    import pytorch_lightning
    import torchvision

    class Classifier(pytorch_lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = torchvision.models.resnet18(num_classes=100)
            self.loop = TimedLoop(seconds, checksum_of_module(self.network))
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
        torch.utils.data.DataLoader(PictureDataset(count, 128), batch_size=64, num_workers=2, persistent_workers=True)
        for count in (1280, 128)
    ]
    model = Classifier()
    with tempfile.TemporaryDirectory() as folder:
        pytorch_lightning.Trainer(
            max_epochs=100,
            precision="bf16-mixed",
            default_root_dir=folder,
            enable_progress_bar=False,
            logger=False,
            enable_model_summary=False,
            num_sanity_val_steps=0,
            min_epochs=1,
        ).fit(model, *loaders)
    model.loop.print()


def jax(seconds: float) -> None:
    import jax.numpy as jnp
    import numpy

    import jax as jaxlib

    keys = jaxlib.random.split(jaxlib.random.PRNGKey(0), 6)
    weights = [jaxlib.random.normal(key, (2048, 2048), jnp.bfloat16) * 0.02 for key in keys]
    inputs = jaxlib.random.normal(keys[0], (4096, 2048), jnp.bfloat16)

    def compute_loss(weights, inputs):
        x = inputs
        for index, weight in enumerate(weights):
            with jaxlib.named_scope(f"layer{index}"):
                x = jaxlib.nn.gelu(x @ weight)
        return jnp.mean((x - inputs).astype(jnp.float32) ** 2)

    @jaxlib.jit
    def step(weights, inputs):
        loss, gradients = jaxlib.value_and_grad(compute_loss)(weights, inputs)
        return [weight - 0.01 * gradient for weight, gradient in zip(weights, gradients)], loss

    loop = TimedLoop(seconds, lambda: hashlib.sha256(numpy.asarray(weights[0]).tobytes()).hexdigest()[:16])
    for _ in loop:
        weights, loss = step(weights, inputs)
        float(loss)
    loop.print()
