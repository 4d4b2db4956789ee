#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows docs/tutorials/gpu-training.md on a real GPU, with a training of ResNet-50.

    make dist
    python3 bench/h200/tutorial.py --joulemap build/dist/joulemap-*/bin/joulemap --folder DIR        about 2 minutes

Writes train.py and train_bf16.py, which differs by the tutorial's change, to DIR, and runs the commands of the tutorial
there. What each printed is in DIR/outputs.txt. Exits 1 when a command fails, when the report of the probed recording has no
measured GPU energy or no rows, or when `diff` does not find that bf16 uses less energy.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from findings import Findings  # noqa: E402

TRAINING = """
import torch
import torchvision

torch.manual_seed(0)
model = torchvision.models.resnet50().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
criterion = torch.nn.CrossEntropyLoss()
batch = torch.randn(64, 3, 224, 224, device="cuda")
target = torch.randint(0, 1000, (64,), device="cuda")
for step in range(150):
    optimizer.zero_grad()
    {loss}
    loss.backward()
    optimizer.step()
print("loss", loss.item())
"""
FULL_PRECISION = "loss = criterion(model(batch), target)"
HALF_PRECISION = f'with torch.autocast("cuda", dtype=torch.bfloat16):\n        {FULL_PRECISION}'
REPETITIONS = 3


class Tutorial:
    """Runs commands in the folder and keeps what they printed."""

    def __init__(self, joulemap: str, folder: Path, findings: Findings) -> None:
        self.joulemap, self.folder, self.findings = joulemap, folder, findings

    def run(self, *arguments: str) -> str:
        completed_process = subprocess.run(
            [self.joulemap, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=200, check=False
        )
        self.findings.bar(f"joulemap {' '.join(arguments[:3])}: exit 0", completed_process.returncode == 0)
        with (self.folder / "outputs.txt").open("a") as outputs:
            print("$ joulemap", *arguments, f"\n{completed_process.stdout}{completed_process.stderr}", file=outputs)
        return completed_process.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    (options.folder / "train.py").write_text(TRAINING.format(loss=FULL_PRECISION))
    (options.folder / "train_bf16.py").write_text(TRAINING.format(loss=HALF_PRECISION))
    findings = Findings()
    tutorial = Tutorial(str(options.joulemap.resolve()), options.folder, findings)

    doctor_lines = tutorial.run("doctor").splitlines()
    findings.bar("doctor: nvml measured", any("nvml" in line and "measured" in line for line in doctor_lines))
    tutorial.run("record", "--probe", "--", sys.executable, "train.py")
    tutorial.run("report", "run.joule", "--top", "8")
    result = json.loads(tutorial.run("report", "run.joule", "--json"))
    gpu_j = sum(domain["measured_j"] or 0 for domain in result["domains"] if domain["name"] == "gpu0")
    findings.bar(f"report: {gpu_j:.0f} J measured on gpu0, {len(result['rows'])} rows", gpu_j > 0 and result["rows"])
    tutorial.run("report", "run.joule", "--html", "page.html")
    variants = {"before": "train.py", "after": "train_bf16.py"}
    for repetition in range(REPETITIONS):
        for variant, program in variants.items():
            tutorial.run("record", "-q", "-o", f"{variant}-{repetition}.joule", "--", sys.executable, program)
    files = {variant: [f"{variant}-{i}.joule" for i in range(REPETITIONS)] for variant in variants}
    comparison = tutorial.run("diff", *files["after"], "--baseline", *files["before"])
    print(comparison)
    findings.bar("diff: bf16 uses less energy", "B uses less energy" in comparison)
    return findings.conclude(None)


if __name__ == "__main__":
    sys.exit(main())
