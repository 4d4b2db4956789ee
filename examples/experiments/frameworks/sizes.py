# SPDX-License-Identifier: Apache-2.0
"""Settings of each network in two sizes: "small" trains in seconds on a CPU, "full" is for an H200.

All frameworks use the same settings. A training ends when the mean loss of `check_every` steps is at most
`target_loss`, or after `step_limit` steps. The data have `drawn_classes` or `drawn_words`, of which the outputs may have
more.
"""

from __future__ import annotations

# Steps before the measured window: they compile and allocate. They train like any other step.
WARM_UP_STEPS = 2

SIZES: dict[str, dict[str, dict]] = {
    "resnet50": {
        "small": {
            "width": 8, "blocks": (3, 4, 6, 3), "classes": 5, "drawn_classes": 5, "image_pixels": 32, "batch": 32,
            "train_batches": 32, "learning_rate": 3e-3, "target_loss": 0.3, "check_every": 10, "step_limit": 100,
            "inference_batches": 100,
        },
        "full": {
            "width": 64, "blocks": (3, 4, 6, 3), "classes": 1000, "drawn_classes": 100, "image_pixels": 224,
            "batch": 64, "train_batches": 16, "learning_rate": 1e-3, "target_loss": 0.5, "check_every": 10,
            "step_limit": 300, "inference_batches": 400,
        },
    },
    "ssd": {
        "small": {
            "width": 8, "classes": 4, "image_pixels": 64, "objects": 3, "batch": 16, "train_batches": 32,
            "detections": 20, "learning_rate": 5e-3, "target_loss": 2.6, "check_every": 10, "step_limit": 150,
            "inference_batches": 150,
        },
        "full": {
            "width": 64, "classes": 20, "image_pixels": 256, "objects": 4, "batch": 64, "train_batches": 16,
            "detections": 200, "learning_rate": 1e-3, "target_loss": 2.0, "check_every": 10, "step_limit": 400,
            "inference_batches": 400,
        },
    },
    "mask_rcnn": {
        "small": {
            "width": 12, "blocks": (1, 1, 1, 1), "pyramid_width": 16, "box_width": 64, "classes": 2,
            "image_pixels": 64, "objects": 2, "batch": 4, "train_batches": 32, "candidates": 64, "proposals": 16,
            "mask_regions": 6, "detections": 8, "learning_rate": 3e-3, "target_loss": 2.7, "check_every": 10,
            "step_limit": 100, "inference_batches": 50,
        },
        "full": {
            "width": 64, "blocks": (3, 4, 6, 3), "pyramid_width": 256, "box_width": 1024, "classes": 20,
            "image_pixels": 512, "objects": 4, "batch": 8, "train_batches": 16, "candidates": 1000, "proposals": 256,
            "mask_regions": 64, "detections": 100, "learning_rate": 3e-4, "target_loss": 2.0, "check_every": 10,
            "step_limit": 300, "inference_batches": 150,
        },
    },
    "ncf": {
        "small": {
            "users": 4000, "items": 2000, "groups": 8, "factors": 16, "mlp_widths": (64, 32, 16), "batch": 16384,
            "train_batches": 32, "candidates": 100, "inference_users": 512, "learning_rate": 5e-3, "target_loss": 0.25,
            "check_every": 10, "step_limit": 200, "inference_batches": 60,
        },
        "full": {
            "users": 138493, "items": 26744, "groups": 16, "factors": 64, "mlp_widths": (256, 256, 128, 64),
            "batch": 1048576, "train_batches": 16, "candidates": 100, "inference_users": 8192, "learning_rate": 5e-3,
            "target_loss": 0.35, "check_every": 10, "step_limit": 400, "inference_batches": 600,
        },
    },
    "lstm_translator": {
        "small": {
            "vocabulary": 60, "drawn_words": 60, "width": 64, "layers": 2, "length": 12, "batch": 32,
            "train_batches": 64, "learning_rate": 1e-2, "target_loss": 0.5, "check_every": 10, "step_limit": 400,
            "inference_batches": 200,
        },
        "full": {
            "vocabulary": 8192, "drawn_words": 500, "width": 1024, "layers": 2, "length": 32, "batch": 128,
            "train_batches": 64, "learning_rate": 1e-3, "target_loss": 1.0, "check_every": 20, "step_limit": 800,
            "inference_batches": 100,
        },
    },
    "transformer_xl": {
        "small": {
            "vocabulary": 200, "drawn_words": 200, "width": 48, "heads": 4, "hidden_width": 96, "layers": 3,
            "segment": 16, "segments": 2, "batch": 16, "train_batches": 64, "learning_rate": 3e-3, "target_loss": 1.4,
            "check_every": 10, "step_limit": 200, "inference_batches": 200,
        },
        "full": {
            "vocabulary": 8192, "drawn_words": 500, "width": 512, "heads": 8, "hidden_width": 2048, "layers": 16,
            "segment": 192, "segments": 2, "batch": 16, "train_batches": 64, "learning_rate": 3e-4, "target_loss": 1.4,
            "check_every": 10, "step_limit": 400, "inference_batches": 150,
        },
    },
}  # fmt: skip
