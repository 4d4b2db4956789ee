"""The sitecustomize that `joulemap record` injects does not change how the program starts, ends and imports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zipfile

import pytest
from recorded_program import environment, read_parts

STEPS = """
import os, sys
import torch, torch.nn as nn
net = nn.Linear(4, 4)
for _ in range(3):
    net(torch.ones(1, 4)).sum().backward()
"""


def run(binaries, folder, *arguments, **more):
    env = environment(binaries.parent, folder, **more)
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=120, env=env, cwd=folder
    )


def test_the_program_does_not_observe_the_capture(binaries, tmp_path):
    program = (
        "import sys; print([p for p in sys.path if 'inject' in p], {'sitecustomize', 'joulemap'} & set(sys.modules))"
    )
    process = run(binaries, tmp_path, "-c", program)
    assert (process.stdout, process.stderr) == ("[] set()\n", "")
    assert read_parts(tmp_path) == []


def test_the_programs_own_sitecustomize_is_imported(binaries, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.marker = 'mine'")
    injection_path = environment(binaries.parent, tmp_path)["PYTHONPATH"]
    combined_python_path = f"{injection_path}{os.pathsep}{tmp_path}"
    program = "import sys, os, sitecustomize; print(sys.marker, sitecustomize.__file__, os.environ['PYTHONPATH'])"
    process = run(binaries, tmp_path, "-c", program, PYTHONPATH=combined_python_path)
    assert process.stdout.split() == ["mine", str(tmp_path / "sitecustomize.py"), combined_python_path]
    unrecorded_process = run(binaries, tmp_path, "-c", program, PYTHONPATH=combined_python_path, JOULEMAP_RECORDING="")
    assert unrecorded_process.stdout == process.stdout


def test_an_error_in_the_programs_own_sitecustomize_is_reported_by_python(binaries, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('mine')")
    injection_path = environment(binaries.parent, tmp_path)["PYTHONPATH"]
    unrecorded_process = run(binaries, tmp_path, "-c", "print(1)", PYTHONPATH=str(tmp_path))
    recorded_process = run(binaries, tmp_path, "-c", "print(1)", PYTHONPATH=f"{injection_path}{os.pathsep}{tmp_path}")
    assert "mine" in unrecorded_process.stderr
    assert (recorded_process.stdout, recorded_process.stderr) == (unrecorded_process.stdout, unrecorded_process.stderr)


@pytest.mark.parametrize(
    "end",
    [
        "os._exit(0)",
        "os.execv(sys.executable, [sys.executable, '-c', 'pass'])",
        "os.execlp('true', 'true')",
        "sys.exit(0)",
    ],
)
def test_every_kind_of_program_exit_completes_the_recording(record, end):
    part = record(STEPS + end).part
    assert len(part.of("end")) == 1
    assert part.count("train", "forward", "Linear") == 3


def test_looking_for_a_framework_without_importing_it_does_not_lose_its_capture(record):
    probe = "import importlib.util\nassert importlib.util.find_spec('torch') and importlib.util.find_spec('torch')\n"
    assert record(probe + STEPS).part.count("train", "forward", "Linear") == 3


def test_modules_of_one_zip_file_share_a_loader_and_are_captured_once_each(record, tmp_path):
    source = "class {kind}:\n    def run(self): pass\n"
    with zipfile.ZipFile(tmp_path / "modules.zip", "w") as archive:
        for name in ("helper", "onnxruntime_genai", "onnxruntime"):
            archive.writestr(name + ".py", source.format(kind=name))
    recorded_program = record(
        f"""
import importlib.util, sys
sys.path.insert(0, {str(tmp_path / "modules.zip")!r})
for name in ("onnxruntime_genai", "onnxruntime", "onnxruntime_genai"):
    assert importlib.util.find_spec(name)
import helper
import joulemap
installed = []
for name in ("_onnxruntime_capture", "_onnxruntime_genai_capture"):
    module = importlib.import_module("joulemap." + name)
    module.install = lambda framework, name=name: installed.append((name, framework.__name__))
import onnxruntime_genai, onnxruntime
print(installed, "exec_module" in vars(onnxruntime.__loader__))
"""
    )
    assert recorded_program.out == (
        "[('_onnxruntime_genai_capture', 'onnxruntime_genai'), ('_onnxruntime_capture', 'onnxruntime')] False\n"
    )


def test_a_program_that_is_not_found_does_not_end_the_recording(record):
    failing_exec_code = (
        "try:\n    os.execvp('no-such-program', ['x'])\nexcept FileNotFoundError:\n    net(torch.ones(1, 4))\n"
    )
    assert record(STEPS + failing_exec_code).part.count("train", "forward", "Linear") == 4


def test_a_terminated_program_keeps_its_recorded_steps(binaries, tmp_path):
    program = STEPS + "print('ready', flush=True)\nimport time\nwhile True: time.sleep(60)\n"
    env = environment(binaries.parent, tmp_path)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=env, text=True) as process:
        process.stdout.readline()
        # Wait until the part contains the steps: it is written about twice a second.
        deadline_s = time.monotonic() + 60
        while time.monotonic() < deadline_s and not any(
            p.count("train", "forward", "Linear") for p in read_parts(tmp_path)
        ):
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == -signal.SIGTERM
    assert [part.count("train", "forward", "Linear") for part in read_parts(tmp_path)] == [3]


# The worker's loop and its batches are modules, so that each has a row; by region they are regions.
WORKER_PREPROCESSING_PATH = ("train", "dataloader", "worker", "worker", "worker.preprocessing")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_loader_workers_record_their_preprocessing(record, method):
    recorded_program = record(
        """
import torch, torch.nn as nn

class Data(torch.utils.data.Dataset):
    def __len__(self): return 16
    def __getitem__(self, i): return torch.full((4,), float(i))

if __name__ == "__main__":
    net = nn.Linear(4, 4)
    loader = torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2, multiprocessing_context=%r)
    for epoch in range(2):
        for x in loader:
            net(x).sum().backward()
"""
        % method
    )
    workers = [part for part in recorded_program.parts if part.count("train", "dataloader", "worker")]
    assert len(workers) == 4
    assert sum(part.count(*WORKER_PREPROCESSING_PATH, "preprocessing") for part in workers) == 16
    for part in workers:
        assert len(part.of("end")) == 1
        assert not [path for path in part.times if "forward" in path]
    main = [part for part in recorded_program.parts if part.count("train", "forward", "Linear")]
    assert [part.count("train", "forward", "Linear") for part in main] == [16]
    assert all(part.diagnostics == [] for part in recorded_program.parts)


def test_a_failure_of_the_capture_is_recorded_and_the_program_continues(record):
    part = record(
        "import joulemap._torch_modules as names\n"
        "def fail(self, module, outermost): raise RuntimeError('ours')\n"
        "names.ModuleNames.name_called_module = fail\n" + STEPS + "print('done')"
    ).part
    assert part.diagnostics == ["capture_failed"]
