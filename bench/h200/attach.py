#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records one training in four ways and compares attribution of GPU energy and energy per step.

    make dist
    python3 bench/h200/attach.py --joulemap build/dist/joulemap-*/bin/joulemap --folder DIR        about 70 s

ResNet-18, batch 64, on gpu0: under jm.attach, under `joulemap record`, with `joulemap record -p` of a training that runs
already, and under jm.attach with a DataLoader of four workers. Prints the shares of GPU energy in the steady steps that are
background, idle, unattributed and owned, joules per step, and the notes about the GPU. The card must be otherwise unused.

Bars: background below 1 % in each; joules per step of the first three within 3 % of their median. Exits 1 when one is
missed. Writes DIR/attach.json. `record -p` sees no kernels: its energy is unattributed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

START_METHODS = ["attach", "record", "record -p", "attach, workers"]
MAX_BACKGROUND_SHARE, MAX_RELATIVE_DIFFERENCE = 0.01, 0.03
MAX_RUN_S = 120


def main() -> int:
    options = parse_arguments()
    if options.load:
        run_load(options)
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    findings = [measure(options, start_method) for start_method in options.ways.split("; ")]
    missed_bars = find_missed_bars(findings)
    print_table(findings)
    for line in missed_bars:
        print(f"MISSED: {line}")
    print(f"{time.monotonic() - begun:.0f} s")
    result = {"ways": findings, "missed": missed_bars, "device": options.device, "batch": options.batch}
    (options.folder / "attach.json").write_text(json.dumps(result, indent=1))
    return 1 if missed_bars else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=6, help="of steady steps, each way")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--device", default="cuda", help="cpu tries the script out without a GPU")
    parser.add_argument("--ways", default="; ".join(START_METHODS))
    parser.add_argument("--load", help=argparse.SUPPRESS)  # internal: run the training itself, recorded in this way
    return parser.parse_args()


# The training


def network(torch, device: str):
    if device == "cpu":
        nn = torch.nn
        return nn.Sequential(nn.Conv2d(3, 8, 3, stride=4), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))
    from torchvision.models import resnet18

    return resnet18(num_classes=10).to(memory_format=torch.channels_last)


def batches(torch, options: argparse.Namespace, side: int):
    """Yields batches on the device; DataLoader workers make them where options ask for workers."""
    if "workers" not in options.load:
        images = torch.randn(options.batch, 3, side, side, device=options.device)
        labels = torch.randint(0, 10, (options.batch,), device=options.device)
        while True:
            yield images, labels

    class ImageDataset(torch.utils.data.Dataset):
        def __len__(self):
            return 1 << 20

        def __getitem__(self, index):
            return torch.full((3, side, side), float(index % 7)), index % 10

    pins_memory = options.device == "cuda"
    loader = torch.utils.data.DataLoader(
        ImageDataset(), batch_size=options.batch, num_workers=4, pin_memory=pins_memory
    )
    for images, labels in loader:
        yield images.to(options.device, non_blocking=True), labels.to(options.device, non_blocking=True)


def run_load(options: argparse.Namespace) -> None:
    import torch

    torch.manual_seed(0)
    side = 224 if options.device == "cuda" else 32
    net = network(torch, options.device).to(options.device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    criterion = torch.nn.CrossEntropyLoss()
    batch_iterator = batches(torch, options, side)

    def step() -> None:
        images, labels = next(batch_iterator)
        optimizer.zero_grad()
        criterion(net(images), labels).backward()
        optimizer.step()

    def steps(seconds: float) -> int:
        """Runs steps and synchronizes every 10 steps only: more waiting would change the energy of a step."""
        count, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            for _ in range(10):
                step()
            count += 10
            if options.device == "cuda":
                torch.cuda.synchronize()
        return count

    step()  # creates contexts, libraries and plans before the measurement
    recording = None
    if options.load.startswith("attach"):
        import joulemap as jm

        recording = jm.attach(net, file=str(options.folder / f"{file_name(options.load)}.joule"), sensors="nvml")
    elif options.load == "record -p":
        print(os.getpid(), flush=True)
        sys.stdin.readline()  # continues once the recorder has started
    steps(1.5)
    begin_ns = time.monotonic_ns()
    count = steps(options.seconds)
    span = {"begin_ns": begin_ns, "end_ns": time.monotonic_ns(), "steps": count}
    steps(0.3)
    if recording is not None:
        recording.detach()
    (options.folder / f"{file_name(options.load)}.json").write_text(json.dumps(span))


# Recording and reporting


def file_name(start_method: str) -> str:
    return start_method.replace(" ", "-").replace(",", "")


def package_folder(joulemap: Path) -> Path:
    """Returns the folder of the Python package that belongs to the program, in a build or in the output of make
    dist."""
    folder = joulemap.resolve().parent.parent
    return folder.parent if (folder / "__init__.py").exists() else folder / "python"


def measure(options: argparse.Namespace, start_method: str) -> dict:
    file = options.folder / f"{file_name(start_method)}.joule"
    load = [sys.executable, str(Path(__file__).resolve())]
    for name in ("joulemap", "folder", "seconds", "batch", "device"):
        load += [f"--{name}", str(getattr(options, name))]
    load += ["--load", start_method]
    program = str(options.joulemap)
    record = [program, "record", "--sensors", "nvml", "--no-learn", "-o", str(file)]
    paths = [str(package_folder(options.joulemap)), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "JOULEMAP_DATA": str(options.folder), "PYTHONPATH": os.pathsep.join(paths)}
    if start_method == "record -p":
        record_running_load(load, record, environment)
    else:
        subprocess.run(
            [*record, "--", *load] if start_method == "record" else load, env=environment, check=True, timeout=MAX_RUN_S
        )
    return ask(program, file, start_method)


def record_running_load(load: list[str], record: list[str], environment: dict) -> None:
    training = subprocess.Popen(load, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pid = training.stdout.readline().strip()
    recorder = subprocess.Popen([*record, "-p", pid, "--announce"], env=environment, stdout=subprocess.PIPE, text=True)
    recorder.stdout.readline()
    training.stdin.write("\n")
    training.stdin.close()
    if training.wait(timeout=MAX_RUN_S) != 0 or recorder.wait(timeout=MAX_RUN_S) != 0:
        raise SystemExit("the training or its recorder failed")


def report(program: str, file: Path, *arguments: str) -> dict:
    command = [program, "report", "--json", *arguments, str(file)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=MAX_RUN_S).stdout)


def ask(program: str, file: Path, start_method: str) -> dict:
    span = json.loads(file.with_suffix(".json").read_text())
    began_ns = report(program, file)["start_monotonic_ns"]
    begin_s, end_s = ((span[edge] - began_ns) * 1e-9 for edge in ("begin_ns", "end_ns"))
    steady = report(program, file, "--by", "phase", "--time", f"{begin_s:.6f},{end_s:.6f}")
    measured_j = steady["measured_j"]
    background_j = sum(row["energy_j"] or 0 for row in steady["rows"] if row["path"] == ["background"])
    idle_j, unattributed_j = steady["idle_j"] or 0, steady["unattributed_j"] or 0
    return {
        "way": start_method, "steps": span["steps"], "measured_j": measured_j, "j_per_step": measured_j / span["steps"],
        "step_ms": (span["end_ns"] - span["begin_ns"]) * 1e-6 / span["steps"],
        "background": background_j / measured_j, "idle": idle_j / measured_j, "unattributed": unattributed_j / measured_j,
        "owned": ((steady["attributed_j"] or 0) - background_j) / measured_j,
        "notes": [entry["message"] for entry in steady["diagnostics"] if entry["code"].startswith("gpu_")],
    }  # fmt: skip


def find_missed_bars(findings: list[dict]) -> list[str]:
    missed_bars = []
    for finding in findings:
        if finding["background"] >= MAX_BACKGROUND_SHARE:
            missed_bars.append(f"{finding['way']}: {100 * finding['background']:.1f} % background")
    runs_without_workers = [run_finding for run_finding in findings if "workers" not in run_finding["way"]]
    if runs_without_workers:
        median_j = statistics.median(run_finding["j_per_step"] for run_finding in runs_without_workers)
        for finding in runs_without_workers:
            difference = finding["j_per_step"] / median_j - 1
            if abs(difference) > MAX_RELATIVE_DIFFERENCE:
                missed_bars.append(f"{finding['way']}: {100 * difference:+.1f} % joules per step from the median")
    return missed_bars


def print_table(findings: list[dict]) -> None:
    print(f"{'':16}{'steps':>7}{'ms/step':>9}{'J/step':>9}{'owned':>8}{'idle':>8}{'backgr.':>9}{'unattr.':>9}")
    for finding in findings:
        columns = (("owned", 6), ("idle", 6), ("background", 7), ("unattributed", 7))
        shares = "".join(f"{100 * finding[key]:>{width}.1f} %" for key, width in columns)
        print(
            f"{finding['way']:16}{finding['steps']:>7}{finding['step_ms']:>9.2f}{finding['j_per_step']:>9.3f}{shares}"
        )
        for note in finding["notes"]:
            print(f"{'':16}note: {note}")


if __name__ == "__main__":
    sys.exit(main())
