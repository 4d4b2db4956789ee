# SPDX-License-Identifier: Apache-2.0
"""These tests need the frameworks themselves: `make test-frameworks` makes an environment that has them. Elsewhere they are
not collected."""

import importlib.util

_NEEDED = ("keras", "jax", "flax", "onnxruntime")
collect_ignore_glob = [] if all(map(importlib.util.find_spec, _NEEDED)) else ["test_*.py"]
