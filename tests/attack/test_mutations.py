"""Runs every reader of external files on thousands of damaged files: each file is read or refused without a crash.

The readers are the fuzz targets of fuzz/, in the build under test; their checks hold for every input.
`make test-attack` runs many more rounds than `make test`. A failure prints the seed and keeps the input.
"""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
ROUNDS = int(os.environ.get("JOULEMAP_ATTACK_ROUNDS", "1"))
INPUTS_PER_ROUND = 150
FUZZ_TARGETS = sorted(path.name for path in (ROOT / "fuzz" / "corpus").iterdir())
# Extreme values of sizes and counts.
EXTREME_VALUES = [
    b"\xff" * 8,
    b"\x7f" * 8,
    b"\0" * 8,
    b"\xff" * 7 + b"\x7f",
    b"\x80" * 8,
    b"9" * 20,
    b"-1",
    b"1e999",
    b"nan",
]


def mutate(original_bytes: bytes, rng: random.Random) -> bytes:
    mutated_bytes = bytearray(original_bytes or b"\0")
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        byte_offset = rng.randrange(len(mutated_bytes) + 1)
        length = rng.randrange(1, 9)
        kind = rng.randrange(5)
        if kind == 0:
            mutated_bytes[byte_offset : byte_offset + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            mutated_bytes[byte_offset:byte_offset] = rng.randbytes(length)
        elif kind == 2:
            del mutated_bytes[byte_offset : byte_offset + length]
        elif kind == 3:
            mutated_bytes[byte_offset : byte_offset + length] = rng.choice(EXTREME_VALUES)
        else:
            mutated_bytes[byte_offset:byte_offset] = mutated_bytes[byte_offset : byte_offset + 64 * length]
    return bytes(mutated_bytes)


@pytest.mark.parametrize("target", FUZZ_TARGETS)
def test_a_damaged_file_is_read_or_refused(binaries, tmp_path, target):
    originals = [path.read_bytes() for path in sorted((ROOT / "fuzz" / "corpus" / target).iterdir())]
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    for number in range(ROUNDS):
        folder = tmp_path / f"round-{number}"
        folder.mkdir()
        for i in range(INPUTS_PER_ROUND):
            (folder / f"{i:03}").write_bytes(mutate(rng.choice(originals), rng))
        command = [binaries / f"fuzz_{target}", folder]
        run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert run.returncode == 0, f"seed {seed}, round {number}, {folder}: {run.stderr[-2000:]}"
