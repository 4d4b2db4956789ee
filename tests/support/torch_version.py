"""The PyTorch version of the tests. Some behaviour needs a newer one than the oldest supported version (2.0)."""

from __future__ import annotations

import importlib.metadata

import pytest


def _read_torch_version() -> tuple[int, ...]:
    try:
        return tuple(map(int, importlib.metadata.version("torch").split(".")[:2]))
    except importlib.metadata.PackageNotFoundError:
        return (0, 0)


TORCH_VERSION = _read_torch_version()


def requires_torch(major: int, minor: int, why: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(TORCH_VERSION < (major, minor), reason=f"PyTorch before {major}.{minor}: {why}")
