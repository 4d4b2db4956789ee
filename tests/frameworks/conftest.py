# SPDX-License-Identifier: Apache-2.0
"""These tests need the frameworks: `make test-frameworks` creates an environment with them. Without them pytest does
not collect the tests."""

import importlib.util

_REQUIRED_MODULES = ("keras", "jax", "flax", "onnxruntime")
collect_ignore_glob = [] if all(map(importlib.util.find_spec, _REQUIRED_MODULES)) else ["test_*.py"]
