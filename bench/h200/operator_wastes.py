#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Known energy wastes, each as two small programs that do the same job, compared by `joulemap diff --by operator`.

    make dist
    python3 bench/h200/operator_wastes.py --joulemap build/dist/joulemap-*/bin/joulemap --folder WHERE [--device cuda]
    python3 bench/h200/operator_wastes.py --joulemap ... --recorded WHERE [--markdown OUT.md]

The wastes are those of the literature (Magneton, arXiv 2512.08365, and guides to PyTorch performance). Each has a
wasteful and a fixed variant, which compute the same results or results of the same use. --folder records both, about
20 s a waste on an H200; --recorded analyses such recordings, also on another machine. The table lists the measured
difference of a step, the cause that `diff` states first, and whether it is the known one.

The rules for causes were adjusted to the wastes in DEVELOPMENT_CASES; those in HELD_OUT_CASES were looked at once,
afterwards. In `unchanged` both variants are equal: `diff` must state no cause. Goals: the right cause in 80 % of either set.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPT_FOLDER))
from findings import Findings  # noqa: E402

MAX_RUN_S = 120
MIN_CORRECT_SHARE = 0.8
# Waste: cause codes of diff that state it, and the kinds of operations that are concerned.
DEVELOPMENT_CASES = {
    "full_precision": ({"precision"}, {"matmul"}),
    "unfused_normalization": ({"unfused"}, {"normalization", "elementwise", "reduction"}),
    "needless_recompute": ({"recompute"}, {"matmul", "elementwise", "normalization", "attention"}),
    "memory_layout": ({"layout"}, {"layout conversion"}),
    "host_copies": ({"host_copies"}, {"host copy"}),
}
HELD_OUT_CASES = {
    "explicit_attention": ({"unfused"}, {"attention", "matmul", "softmax", "elementwise"}),
    "padding": ({"shapes"}, {"matmul", "attention", "elementwise", "normalization"}),
    "cache_concatenation": ({"copies", "layout"}, {"copy"}),
    "optimizer_loop": ({"unfused", "calls", "waiting"}, {"optimizer", "elementwise", "waiting"}),
    "synchronization": ({"waiting", "calls", "host_copies"}, {"waiting", "reduction", "host copy"}),
    "all_logits": ({"shapes"}, {"matmul"}),
    "unchanged": (set(), set()),
}


# --- Programs. Each takes the variant and returns what one step does.


class Setting:
    def __init__(self, options: argparse.Namespace) -> None:
        self.fixed, self.device = options.fixed, options.device
        self.is_cuda = self.device == "cuda"
        self.half = torch.bfloat16 if self.is_cuda else torch.float32

    def size(self, on_gpu: int, on_cpu: int) -> int:
        return on_gpu if self.is_cuda else on_cpu

    def random(self, *shape: int, dtype=torch.float32) -> torch.Tensor:
        return torch.randn(*shape, device=self.device, dtype=dtype)


def make_perceptron(width: int, depth: int) -> nn.Sequential:
    return nn.Sequential(*(part for _ in range(depth) for part in (nn.Linear(width, width), nn.GELU())))


class HandWrittenNorm(nn.Module):
    """LayerNorm from its formula."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(-1, keepdim=True)
        variance = (x - mean).pow(2).mean(-1, keepdim=True)
        return (x - mean) / torch.sqrt(variance + 1e-5) * self.weight + self.bias


class HandWrittenGelu(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


class Attention(nn.Module):
    def __init__(self, width: int, fused: bool = True) -> None:
        super().__init__()
        self.heads, self.fused = max(width // 64, 1), fused
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if self.fused:
            attention_output = F.scaled_dot_product_attention(q, k, v)
        else:
            attention_output = torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v
        return self.out(attention_output.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, fused: bool = True) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, fused)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class TransformerBlocks(nn.Module):
    def __init__(self, width: int, depth: int, fused: bool = True, recompute: bool = False) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, fused) for _ in range(depth))
        self.recompute = recompute

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return x


def make_inference_step(model: nn.Module, x: torch.Tensor):
    model.eval()

    def step() -> None:
        with torch.no_grad():
            model(x)

    return step


def make_training_step(model: nn.Module, next_batch, optimizer=None, after=None, autocast: bool = False):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        x = next_batch()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast and x.is_cuda):
            loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()
        if after:
            after(model, loss)

    return step


def full_precision(setting: Setting):
    """32-bit products on ordinary cores, where tensor cores (TF32) are allowed."""
    torch.set_float32_matmul_precision("high" if setting.fixed else "highest")
    width = setting.size(4096, 64)
    dtype = torch.float32 if setting.is_cuda or setting.fixed else torch.float64  # a CPU has no TF32
    model, x = make_perceptron(width, 6).to(setting.device, dtype), setting.random(width, width, dtype=dtype)
    return make_training_step(model, lambda: x)


def unfused_normalization(setting: Setting):
    """LayerNorm and GELU from their formulas, and as operations of PyTorch."""
    width = setting.size(2048, 64)
    norm, gelu = (nn.LayerNorm, lambda: nn.GELU("tanh")) if setting.fixed else (HandWrittenNorm, HandWrittenGelu)
    model = nn.Sequential(*(part for _ in range(6) for part in (norm(width), nn.Linear(width, width), gelu())))
    x = setting.random(setting.size(32768, 256), width, dtype=setting.half)
    return make_inference_step(model.to(setting.device, setting.half), x)


def needless_recompute(setting: Setting):
    """Activation checkpointing where memory suffices without."""
    model = TransformerBlocks(setting.size(1024, 64), 6, recompute=not setting.fixed).to(setting.device)
    x = setting.random(setting.size(16, 2), setting.size(512, 32), setting.size(1024, 64))
    return make_training_step(model, lambda: x, autocast=True)


def memory_layout(setting: Setting):
    """Convolutions of a network in NCHW format, which cuDNN computes in NHWC."""
    form = torch.channels_last if setting.fixed else torch.contiguous_format
    width = setting.size(128, 8)
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, padding=1), nn.ReLU()]
    for _ in range(5):
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
    model = nn.Sequential(*layers).to(setting.device).to(memory_format=form)
    x = setting.random(setting.size(32, 2), 3, setting.size(96, 16), setting.size(96, 16)).to(memory_format=form)
    return make_training_step(model, lambda: x, autocast=True)


def host_copies(setting: Setting):
    """The same batch is copied from ordinary host memory in every step, as 32-bit numbers."""
    width = setting.size(64, 4)
    model = nn.Sequential(nn.Conv2d(3, width, 7, stride=4), nn.ReLU(), nn.Conv2d(width, width, 3), nn.ReLU()).to(
        setting.device
    )
    images = torch.randn(setting.size(128, 4), 3, setting.size(256, 32), setting.size(256, 32))
    device_images = images.to(setting.device)
    return make_training_step(
        model, lambda: device_images if setting.fixed else images.to(setting.device), autocast=True
    )


def explicit_attention(setting: Setting):
    """Attention as two products and a softmax, and as scaled_dot_product_attention."""
    model = TransformerBlocks(setting.size(1024, 64), 4, fused=setting.fixed).to(setting.device, setting.half)
    return make_inference_step(
        model, setting.random(setting.size(16, 2), setting.size(1024, 32), setting.size(1024, 64), dtype=setting.half)
    )


def padding(setting: Setting):
    """Sequences of at most 320 tokens are padded to 1024, and to a multiple of 64."""
    model = TransformerBlocks(setting.size(768, 64), 6).to(setting.device)
    length = setting.size(320, 16) if setting.fixed else setting.size(1024, 64)
    x = setting.random(setting.size(32, 2), length, setting.size(768, 64))
    return make_training_step(model, lambda: x, autocast=True)


class CachedLayer(nn.Module):
    """Decodes tokens with a cache of keys and values that grows by concatenation, or that is allocated once."""

    def __init__(self, heads: int, length: int, batch: int, concatenates_cache: bool, setting: Setting) -> None:
        super().__init__()
        self.heads, self.length, self.concatenates_cache = heads, length, concatenates_cache
        self.qkv = nn.Linear(64 * heads, 192 * heads)
        self.out = nn.Linear(64 * heads, 64 * heads)
        self.cache = [setting.random(batch, heads, length + 8, 64, dtype=setting.half) for _ in range(2)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch = x.shape[0]
        key_value_cache = [cache[:, :, : self.length] for cache in self.cache]
        for token in range(8):
            query, *new = self.qkv(x).view(batch, 3, self.heads, 1, 64).unbind(1)
            end = self.length + token
            if self.concatenates_cache:
                key_value_cache = [torch.cat([cache, new_entry], 2) for cache, new_entry in zip(key_value_cache, new)]
            else:
                for cache, cache_entry in zip(self.cache, new):
                    cache[:, :, end : end + 1] = cache_entry
                key_value_cache = [cache[:, :, : end + 1] for cache in self.cache]
            attention_output = F.scaled_dot_product_attention(query, *key_value_cache)
            x = x + self.out(attention_output.reshape(batch, -1))
        return x


def cache_concatenation(setting: Setting):
    """Decoding that concatenates the cache of keys and values with every token."""
    heads, length, batch = setting.size(16, 2), setting.size(2048, 32), setting.size(32, 2)
    layers = (CachedLayer(heads, length, batch, not setting.fixed, setting) for _ in range(4))
    model = nn.Sequential(*layers).to(setting.device, setting.half)
    return make_inference_step(model, setting.random(batch, 64 * heads, dtype=setting.half))


def optimizer_loop(setting: Setting):
    """An optimizer that updates one parameter after the other, and a fused one."""
    width = setting.size(1024, 32)
    model = nn.Sequential(*(nn.Linear(width, width) for _ in range(40))).to(setting.device)
    options = {"fused": True} if setting.fixed else {"foreach": False}
    x = setting.random(64, width)
    return make_training_step(model, lambda: x, torch.optim.AdamW(model.parameters(), lr=1e-5, **options))


def synchronization(setting: Setting):
    """The norm of each gradient is read by the host, one by one, after every step."""
    model, x = (
        make_perceptron(setting.size(1024, 64), 24).to(setting.device),
        setting.random(setting.size(1024, 32), setting.size(1024, 64)),
    )

    def read_gradient_norms(model: nn.Module, loss: torch.Tensor) -> None:
        for parameter in model.parameters():
            parameter.grad.norm().item()

    return make_training_step(model, lambda: x, after=None if setting.fixed else read_gradient_norms, autocast=True)


class LanguageHead(nn.Module):
    def __init__(self, width: int, tokens: int, last_token_only: bool) -> None:
        super().__init__()
        self.body, self.head, self.last_token_only = (
            TransformerBlocks(width, 2),
            nn.Linear(width, tokens, bias=False),
            last_token_only,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden_states = self.body(x)
        return self.head(hidden_states[:, -1:] if self.last_token_only else hidden_states)[:, -1]


def all_logits(setting: Setting):
    """Logits of all positions of a prompt, of which only the last are used."""
    model = LanguageHead(setting.size(1024, 64), setting.size(50_304, 512), setting.fixed).to(
        setting.device, setting.half
    )
    return make_inference_step(
        model, setting.random(setting.size(16, 2), setting.size(512, 32), setting.size(1024, 64), dtype=setting.half)
    )


def unchanged(setting: Setting):
    """Equal variants."""
    model = TransformerBlocks(setting.size(768, 64), 6).to(setting.device)
    x = setting.random(setting.size(32, 2), setting.size(320, 16), setting.size(768, 64))
    return make_training_step(model, lambda: x, autocast=True)


PROGRAMS = {
    case.__name__: case
    for case in (full_precision, unfused_normalization, needless_recompute, memory_layout, host_copies, explicit_attention,
                 padding, cache_concatenation, optimizer_loop, synchronization, all_logits, unchanged)
}  # fmt: skip


def run_program(options: argparse.Namespace) -> int:
    """Repeats the step for the given time, so that fast variants do more steps."""
    torch.manual_seed(0)
    if options.device == "cpu":
        torch.set_num_threads(1)
    step = PROGRAMS[options.program](Setting(options))
    wait = torch.cuda.synchronize if options.device == "cuda" else lambda: None
    for _ in range(3):
        step()
    wait()
    steps, end = 0, time.perf_counter() + options.seconds
    while time.perf_counter() < end or steps < 20:
        step()
        steps += 1
        if steps % 4 == 0:
            wait()  # bounds the work that is queued when the time is over
    wait()
    print(f"{options.program} {'fixed' if options.fixed else 'wasteful'}: {steps + 3} steps", file=sys.stderr)
    return 0


# --- Recordings and their comparison.


def list_variant_files(folder: Path, case: str) -> tuple[Path, Path]:
    return folder / f"{case}-fixed.joule", folder / f"{case}-wasteful.joule"


def record(options: argparse.Namespace, case: str) -> str:
    """Records both variants; returns the output of a failure."""
    for file, variant in zip(list_variant_files(options.folder, case), (["--fixed"], [])):
        program = [sys.executable, str(SCRIPT_FOLDER / "operator_wastes.py"), "--program", case, *variant,
                   "--device", options.device, "--seconds", str(options.seconds)]  # fmt: skip
        command = [str(options.joulemap), "record", "-q", "--no-learn", "-o", str(file), "--", *program]
        begin = time.perf_counter()
        completed_process = subprocess.run(command, capture_output=True, text=True, timeout=MAX_RUN_S, check=False)
        output_tail = (completed_process.stdout + completed_process.stderr)[-800:]
        if completed_process.returncode:
            return output_tail
        print(f"{time.perf_counter() - begin:5.1f} s  {output_tail.strip()}", file=sys.stderr, flush=True)
    return ""


def compare(joulemap: Path, folder: Path, case: str) -> dict:
    fixed_recording, wasteful = list_variant_files(folder, case)
    command = [str(joulemap), "diff", str(fixed_recording), str(wasteful), "--by", "operator", "--json"]
    completed_process = subprocess.run(command, capture_output=True, text=True, check=False)
    if completed_process.returncode:
        return {"failure": (completed_process.stdout + completed_process.stderr)[-400:]}
    return json.loads(completed_process.stdout.rstrip().split("\n")[-1])


def make_result_line(case: str, expected: tuple[set, set], result: dict) -> tuple[list[str], bool]:
    if "failure" in result:
        return [case, "failed", result["failure"].replace("\n", " ")[:80], "", "**no**"], False
    total, causes = result["total"], result.get("causes", [])
    change = "unknown" if total["relative"] is None else f"{total['relative']:+.0%}"
    increased_entries = [entry for entry in result["entries"] if (entry["difference_j"] or 0) > 0]
    group = increased_entries[0]["display_name"] if increased_entries else "none"
    codes, kinds = expected
    if codes:
        is_case_correct = bool(causes) and causes[0]["code"] in codes and bool(kinds & set(causes[0]["kinds"]))
    else:
        is_case_correct = not causes
    stated_cause = causes[0]["text"] if causes else "none"
    return [case, change, group, stated_cause, "yes" if is_case_correct else "**no**"], is_case_correct


def analyse_recordings(options: argparse.Namespace, cases: list[str]) -> int:
    findings = Findings()
    for name, expected in (("adjusted to", DEVELOPMENT_CASES), ("looked at once", HELD_OUT_CASES)):
        expected_by_case = {case: expected[case] for case in cases if case in expected}
        if not expected_by_case:
            continue
        results = [
            make_result_line(case, expected_causes, compare(options.joulemap, options.folder, case))
            for case, expected_causes in expected_by_case.items()
        ]
        findings.add_line(f"\nWastes {name}, energy of a step of the wasteful variant against the fixed one:")
        head = ["waste", "difference", "group that grew most", "cause stated", "right"]
        findings.table(head, [line for line, _ in results])
        correct_count = sum(is_case_correct for _, is_case_correct in results)
        met = findings.bar(f"causes, {name}", correct_count >= MIN_CORRECT_SHARE * len(results))
        findings.add_line(
            f"wastes {name}: {correct_count} of {len(results)} right; goal {MIN_CORRECT_SHARE:.0%}: {met}"
        )
    return findings.conclude(options.markdown)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", type=Path, default=Path("joulemap"))
    parser.add_argument("--folder", type=Path, help="record all cases into this folder")
    parser.add_argument("--recorded", type=Path, help="analyse the recordings in this folder")
    parser.add_argument("--cases", default=",".join([*DEVELOPMENT_CASES, *HELD_OUT_CASES]))
    parser.add_argument("--seconds", type=float, default=3.5, help="time in which a program repeats its step")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--program", choices=PROGRAMS, help="only run this program, without recording it")
    parser.add_argument("--fixed", action="store_true", help="with --program: its fixed variant")
    options = parser.parse_args()
    if options.program:
        return run_program(options)
    cases = options.cases.split(",")
    if not options.recorded:
        if not options.folder:
            parser.error("give --folder or --recorded")
        options.folder.mkdir(parents=True, exist_ok=True)
        for case in cases:
            if failure := record(options, case):
                print(f"{case} failed:\n{failure}", file=sys.stderr, flush=True)
    options.folder = options.recorded or options.folder
    return analyse_recordings(options, cases)


if __name__ == "__main__":
    sys.exit(main())
