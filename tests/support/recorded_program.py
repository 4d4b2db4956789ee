"""Runs Python programs as `joulemap record` does, and reads what the capture wrote for them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import read_joule

RECORDING_ID = "0123456789abcdef0123456789abcdef"
MARK_STEP, MARK_EPOCH, MARK_EVALUATION, MARK_STEP_RETRACTION, MARK_EPOCH_RETRACTION = "2", "3", "9", "10", "11"
SCOPE_MODE, SCOPE_PHASE, SCOPE_MODULE, SCOPE_OP, SCOPE_FUNCTION, SCOPE_REGION, SCOPE_TENSORS = range(7)


class ProcessPart:
    """The part of one process: its times by the path of the scope, and its other records."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.times: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0, 0])  # count, wall, cpu with helpers
        self.tensors: dict[tuple[str, ...], dict[str, int]] = defaultdict(dict)  # operations: calls by shapes
        self.kinds: dict[tuple[str, ...], int] = {}
        self._scopes_by_number = {0: (0, SCOPE_MODE, "")}
        for line in lines:
            if line.startswith("place "):
                _, _, number, parent, kind, name = line.split(" ", 5)
                self._scopes_by_number[int(number)] = int(parent), int(kind), name
        for line in lines:
            if line.startswith("time "):
                place, count, wall, cpu, helper_ns = map(int, line.split()[4:9])
                row = self.times[self.path(place)]
                row[0], row[1], row[2] = row[0] + count, row[1] + wall, row[2] + cpu + helper_ns
                _, kind, name = self._scopes_by_number[place]
                if kind == SCOPE_TENSORS:
                    calls = self.tensors[self.path(place)]
                    calls[name] = calls.get(name, 0) + count

    def path(self, place: int) -> tuple[str, ...]:
        """Names from the root to a scope. The inputs of an operation are not part of its path."""
        names: tuple[str, ...] = ()
        while place:
            parent, kind, name = self._scopes_by_number[place]
            names = names if kind == SCOPE_TENSORS else (name, *names)
            place = parent
        return names

    def count(self, *path: str) -> int:
        return self.times[path][0] if path in self.times else 0

    def of(self, word: str) -> list[str]:
        """All lines that start with this word, without the word."""
        return [line.split(" ", 1)[1] for line in self.lines if line.startswith(word + " ")]

    @property
    def diagnostics(self) -> list[str]:
        return [line.split()[0] for line in self.of("diagnostic")]

    @property
    def steps(self) -> int:
        return len(self.of("step"))

    def count_marked_steps(self) -> tuple[int, int]:
        """Numbers of training and of evaluation steps, as reports count them: retracted steps do not count."""
        steps: list = []  # [time in ns, whether it is an evaluation step]
        for line in self.of("mark"):
            _, time_ns, kind, number, *_ = line.split()
            if kind == MARK_STEP:
                steps.append([int(time_ns), False])
            elif kind == MARK_STEP_RETRACTION:
                del steps[len(steps) - int(number) :]
            elif kind == MARK_EVALUATION:
                for step in [step for step in steps if step[0] < int(time_ns)][-int(number) :]:
                    step[1] = True
        evaluations = sum(is_evaluation for _, is_evaluation in steps)
        return len(steps) - evaluations, evaluations

    def cpu_share(self, is_chosen_path, among=lambda path: True) -> float:
        """Fraction of the CPU time of scopes accepted by `among` that is in scopes accepted by `chosen`."""
        total = sum(row[2] for path, row in self.times.items() if among(path))
        return sum(row[2] for path, row in self.times.items() if among(path) and is_chosen_path(path)) / max(total, 1)


class RecordedProgram:
    def __init__(self, code: int, out: str, err: str, parts: list[ProcessPart]) -> None:
        self.code, self.out, self.err, self.parts = code, out, err, parts

    @property
    def part(self) -> ProcessPart:
        assert len(self.parts) == 1, self.err
        return self.parts[0]


def environment(build: Path, folder: Path, **more: str) -> dict:
    injection_path = build / "python" / "joulemap" / "inject"
    inherited_variables = {
        name: value for name, value in os.environ.items() if not name.startswith(("JOULEMAP_", "PYTHON"))
    }
    return {
        **inherited_variables, "JOULEMAP_RECORDING": str(folder), "JOULEMAP_RECORDING_ID": RECORDING_ID,
        "PYTHONPATH": str(injection_path), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", **more,
    }  # fmt: skip


def read_parts(folder: Path) -> list[ProcessPart]:
    return [ProcessPart(read_joule.dump(path.read_bytes())) for path in sorted(folder.rglob("*.joule"))]


def run_recorded(build: Path, folder: Path, program: str, *arguments: str, **more: str) -> RecordedProgram:
    """Runs a program from a file, so that spawned workers can import it."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "program.py"
    file.write_text(program)
    process = subprocess.run(
        [sys.executable, str(file), *arguments],
        capture_output=True, text=True, timeout=240, env=environment(build, folder, **more), cwd=folder, check=False,
    )  # fmt: skip
    return RecordedProgram(process.returncode, process.stdout, process.stderr, read_parts(folder))


def run_without_joulemap(folder: Path, program: str, *arguments: str) -> subprocess.CompletedProcess:
    """Runs the same program without Joulemap."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "program.py"
    file.write_text(program)
    inherited_variables = {
        name: value for name, value in os.environ.items() if not name.startswith(("JOULEMAP_", "PYTHON"))
    }
    return subprocess.run(
        [sys.executable, str(file), *arguments],
        capture_output=True, text=True, timeout=240, env={**inherited_variables, "OMP_NUM_THREADS": "1"}, cwd=folder,
        check=False,
    )  # fmt: skip
