# SPDX-License-Identifier: Apache-2.0
"""Classes that wrap a model, and the attribute that contains it. Neither is part of a layer's path."""

WRAPPED_MODEL_ATTRIBUTES = {
    "DistributedDataParallel": "module", "DataParallel": "module", "OptimizedModule": "_orig_mod",
    "FullyShardedDataParallel": "_fsdp_wrapped_module", "CheckpointWrapper": "_checkpoint_wrapped_module",
}  # fmt: skip
