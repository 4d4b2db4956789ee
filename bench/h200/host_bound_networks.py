#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks with steps of 2 to 30 ms, most of which wait for the host, and their blocks. host_bound_blocks.py runs this.

joulemap record -- host_bound_networks.py CASE --out FILE [--probe]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPT_FOLDER))


def cut(paths: list[str], parts: int) -> dict[str, list[str]]:
    """Splits a list of module paths into consecutive blocks."""
    size = -(-len(paths) // parts)
    return {f"{chunk[0]}..{chunk[-1].rsplit('.', 1)[-1]}": chunk
            for chunk in (paths[begin_index : begin_index + size]
                          for begin_index in range(0, len(paths), size))}  # fmt: skip


def list_numbered_modules(stage: str, count: int) -> list[str]:
    return [f"{stage}.{i}" for i in range(count)]


def llama(torch, train: bool):
    from user_program_language import llama as make

    model = make(torch, 512, 8, 8).cuda().bfloat16().train(train)
    tokens = torch.randint(0, 32000, (8, 512), device="cuda")
    blocks = {**cut(list_numbered_modules("blocks", 8), 4), "head": ["head"]}
    return model, (tokens,), lambda logits: logits.float().square().mean(), blocks


def wide_llama(torch, train: bool):
    from user_program_language import llama as make

    model = make(torch, 1536, 6, 24).cuda().bfloat16().train(train)
    tokens = torch.randint(0, 32000, (4, 512), device="cuda")
    blocks = {**cut(list_numbered_modules("blocks", 6), 3), "head": ["head"]}
    return model, (tokens,), lambda logits: logits.float().square().mean(), blocks


def make_torchvision_case(architecture: str, batch: int, stages: dict, half: bool = False):
    def make(torch, train: bool):
        import torchvision

        model = getattr(torchvision.models, architecture)(num_classes=100).cuda().to(memory_format=torch.channels_last)
        images = torch.randn(batch, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
        if half:
            model, images = model.half(), images.half()
        return model.train(train), (images,), lambda out: out.float().square().mean(), stages

    return make


def hugging_face(kind: str, batch: int, length: int):
    def make(torch, train: bool):
        import transformers

        if kind == "bert":
            config = transformers.BertConfig(
                hidden_size=256, num_hidden_layers=8, num_attention_heads=4, intermediate_size=1024
            )
            model, stage, count = transformers.BertModel(config), "encoder.layer", 8
        elif kind == "gpt2":
            config = transformers.GPT2Config(n_embd=384, n_layer=8, n_head=6, use_cache=False)
            model, stage, count = transformers.GPT2Model(config), "h", 8
        else:
            config = transformers.T5Config(d_model=256, num_layers=6, d_ff=1024, num_heads=4, d_kv=64)
            model, stage, count = transformers.T5EncoderModel(config), "encoder.block", 6
        model = model.cuda().bfloat16().train(train)
        tokens = torch.randint(0, 30000, (batch, length), device="cuda")
        return (
            model,
            {"input_ids": tokens},
            lambda out: out[0].float().square().mean(),
            cut(list_numbered_modules(stage, count), 4),
        )

    return make


def mixer(torch, train: bool):
    nn = torch.nn

    class Mixer(nn.Module):
        def __init__(self, patches: int, width: int):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.tokens = nn.Sequential(nn.Linear(patches, 256), nn.GELU(), nn.Linear(256, patches))
            self.channels = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
            return x + self.channels(self.norm2(x))

    model = nn.Sequential(*(Mixer(196, 384) for _ in range(8))).cuda().train(train)
    return model, (torch.randn(32, 196, 384, device="cuda"),), None, cut([str(i) for i in range(8)], 4)


def recurrent(torch, train: bool):
    class SpeechNetwork(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.front = torch.nn.Sequential(
                torch.nn.Conv1d(80, 256, 5, 2, 2), torch.nn.ReLU(), torch.nn.Conv1d(256, 256, 5, 2, 2)
            )
            self.lstm = torch.nn.LSTM(256, 512, 2, batch_first=True, bidirectional=True)
            self.head = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 5000))

        def forward(self, x):
            return self.head(self.lstm(self.front(x).transpose(1, 2))[0])

    model = SpeechNetwork().cuda().train(train)
    return (
        model,
        (torch.randn(32, 80, 800, device="cuda"),),
        None,
        {"front": ["front"], "lstm": ["lstm"], "head": ["head"]},
    )


def decoder(kind: str, batch: int, length: int):
    """Decoders of transformers with eight layers of 512."""

    def make(torch, train: bool):
        import transformers

        if kind == "opt":
            config = transformers.OPTConfig(
                hidden_size=512, num_hidden_layers=8, num_attention_heads=8, ffn_dim=2048, word_embed_proj_dim=512
            )
            model, stage = transformers.OPTModel(config), "decoder.layers"
        else:
            config = transformers.Qwen2Config(
                hidden_size=512,
                num_hidden_layers=8,
                num_attention_heads=8,
                num_key_value_heads=2,
                intermediate_size=1536,
            )
            model, stage = transformers.Qwen2Model(config), "layers"
        model.config.use_cache = False
        model = model.cuda().bfloat16().train(train)
        tokens = torch.randint(0, 30000, (batch, length), device="cuda")
        return (
            model,
            {"input_ids": tokens},
            lambda out: out[0].float().square().mean(),
            cut(list_numbered_modules(stage, 8), 8),
        )

    return make


def unet(torch, train: bool):
    nn = torch.nn

    def pair(inputs: int, outputs: int):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
                             nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())  # fmt: skip

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down1, self.down2, self.down3, self.bottleneck = (
                pair(3, 32),
                pair(32, 64),
                pair(64, 128),
                pair(128, 256),
            )
            self.up3, self.up2, self.up1 = pair(384, 128), pair(192, 64), pair(96, 32)
            self.out = nn.Conv2d(32, 2, 1)

        def forward(self, x):
            downsample, upsample = nn.functional.max_pool2d, nn.functional.interpolate
            level1_features = self.down1(x)
            level2_features = self.down2(downsample(level1_features, 2))
            level3_features = self.down3(downsample(level2_features, 2))
            x = self.bottleneck(downsample(level3_features, 2))
            x = self.up3(torch.cat([upsample(x, scale_factor=2), level3_features], 1))
            x = self.up2(torch.cat([upsample(x, scale_factor=2), level2_features], 1))
            return self.out(self.up1(torch.cat([upsample(x, scale_factor=2), level1_features], 1)))

    model = UNet().cuda().train(train)
    blocks = {name: [name] for name in ("down1", "down2", "down3", "bottleneck", "up3", "up2", "up1")}
    return model, (torch.randn(16, 3, 192, 192, device="cuda"),), lambda out: out.square().mean(), blocks


def recommender(torch, train: bool):
    nn = torch.nn

    def layers(*widths: int):
        return nn.Sequential(
            *(
                part
                for input_width, output_width in zip(widths, widths[1:])
                for part in (nn.Linear(input_width, output_width), nn.ReLU())
            )
        )

    class Recommender(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList(nn.EmbeddingBag(200_000, 64) for _ in range(26))
            self.bottom, self.top = layers(13, 512, 256, 64), layers(27 * 64, 4096, 2048, 1024, 1)[:-1]

        def forward(self, dense_features, sparse_indices):
            rows = [table(sparse_indices[i]) for i, table in enumerate(self.tables)]
            return self.top(torch.cat([self.bottom(dense_features), *rows], 1))

    model = Recommender().cuda().train(train)
    inputs = (torch.randn(8192, 13, device="cuda"), torch.randint(0, 200_000, (26, 8192, 4), device="cuda"))
    blocks = {"tables 0-12": list_numbered_modules("tables", 13), "tables 13-25": [f"tables.{i}" for i in range(13, 26)],
              "bottom": ["bottom"], "top": ["top"]}  # fmt: skip
    return model, inputs, lambda out: out.square().mean(), blocks


EFFICIENTNET_BLOCKS = {"features 0-2": list_numbered_modules("features", 3), "features 3-4": ["features.3", "features.4"],
             "features 5": ["features.5"], "features 6-8": ["features.6", "features.7", "features.8"]}  # fmt: skip
MOBILENET_BLOCKS = {f"features {i}-{i + 3}": [f"features.{j}" for j in range(i, i + 4)] for i in range(0, 16, 4)}
RESNET = {stage: [stage] for stage in ("layer1", "layer2", "layer3", "layer4")}
DENSENET_BLOCKS = {f"denseblock{i}": [f"features.denseblock{i}"] for i in range(1, 5)}
REGNET_BLOCKS = {f"block{i}": [f"trunk_output.block{i}"] for i in range(1, 5)}
SHUFFLENET_BLOCKS = {f"stage{i}": [f"stage{i}"] for i in (2, 3, 4)}
SWIN_BLOCKS = {f"features {i}": [f"features.{i}"] for i in (1, 3, 5, 7)}

VIT = cut([f"encoder.layers.encoder_layer_{i}" for i in range(12)], 6)
VGG = {f"features {first_index}-{last_index}": [f"features.{i}" for i in range(first_index, last_index + 1)]
       for first_index, last_index in ((0, 4), (5, 9), (10, 16), (17, 23), (24, 30))}  # fmt: skip

# name: (maker, trains). DEVELOPMENT_CASES was used while attribution was developed. HELD_OUT_CASES was evaluated only
# after larger changes. NEW_CASES was evaluated once, with the version of 18 November 2026.
DEVELOPMENT_CASES = {
    "llama_inference": (llama, False),
    "llama_training": (llama, True),
    "efficientnet_inference": (make_torchvision_case("efficientnet_b0", 32, EFFICIENTNET_BLOCKS), False),
    "bert_training": (hugging_face("bert", 8, 128), True),
    "resnet18_training": (make_torchvision_case("resnet18", 32, RESNET), True),
    "mixer_inference": (mixer, False),
}
HELD_OUT_CASES = {
    "mobilenet_training": (make_torchvision_case("mobilenet_v3_large", 32, MOBILENET_BLOCKS), True),
    "gpt2_inference": (hugging_face("gpt2", 8, 256), False),
    "t5_training": (hugging_face("t5", 8, 256), True),
    "densenet_inference": (make_torchvision_case("densenet121", 32, DENSENET_BLOCKS), False),
    "regnet_training": (make_torchvision_case("regnet_y_800mf", 32, REGNET_BLOCKS), True),
    "shufflenet_inference": (make_torchvision_case("shufflenet_v2_x1_0", 64, SHUFFLENET_BLOCKS, half=True), False),
    "swin_inference": (make_torchvision_case("swin_t", 32, SWIN_BLOCKS), False),
    "recurrent_training": (recurrent, True),
    "wide_llama_training": (wide_llama, True),
}
NEW_CASES = {
    "vit_inference": (make_torchvision_case("vit_b_16", 32, VIT), False),
    "resnet50_training": (make_torchvision_case("resnet50", 64, RESNET), True),
    "convnext_training": (make_torchvision_case("convnext_tiny", 32, SWIN_BLOCKS), True),
    "vgg_training": (make_torchvision_case("vgg16", 32, VGG), True),
    "opt_inference": (decoder("opt", 8, 256), False),
    "qwen_training": (decoder("qwen", 8, 256), True),
    "unet_training": (unet, True),
    "recommender_training": (recommender, True),
}
CASES = {**DEVELOPMENT_CASES, **HELD_OUT_CASES, **NEW_CASES}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--recorded-s", type=float, default=20.0)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--probe", action="store_true")
    options = parser.parse_args()

    import torch

    import joulemap as jm

    torch.manual_seed(1)
    make, train = CASES[options.case]
    model, inputs, loss, blocks = make(torch, train)
    validation_result = jm.validate(model, inputs, loss=loss, train=train, blocks=blocks, seconds=options.seconds,
                        rounds=options.rounds, recorded_s=options.recorded_s, probe=options.probe)  # fmt: skip
    options.out.write_text(json.dumps(dataclasses.asdict(validation_result)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
