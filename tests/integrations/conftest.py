# SPDX-License-Identifier: Apache-2.0
"""These tests need the integrated packages: `make test-integrations` creates an environment with them. Without them
pytest does not collect the tests. Energies are always estimates here: the tests check where they arrive."""

import importlib.util
import os
import sys
from pathlib import Path

_REQUIRED_MODULES = ("keras", "lightning", "transformers", "mlflow", "wandb", "IPython")
collect_ignore_glob = ["test_*.py"]

if all(map(importlib.util.find_spec, _REQUIRED_MODULES)):
    collect_ignore_glob = []
    root = Path(__file__).resolve().parent.parent.parent
    sys.path.insert(0, str(root / os.environ.get("JOULEMAP_BUILD", "build") / "python"))
    os.environ.update(
        JOULEMAP_SENSORS="estimate", KERAS_BACKEND="torch", WANDB_MODE="offline", WANDB_SILENT="true", HF_HUB_OFFLINE="1",
    )  # fmt: skip
