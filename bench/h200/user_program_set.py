#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training and inference programs as users write them. user_programs.py runs each alone and recorded.

    user_program_set.py NAME [--seconds S]

Each program trains or serves for about S seconds after its first steps and prints one line of JSON at the end: a checksum
of what those steps computed, the median step time and the number of steps. Weights and data are random; sizes are chosen
for one large GPU. Only `attach` uses Joulemap.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_deterministic_ops=true")

import user_program_further as further  # noqa: E402
import user_program_images as images  # noqa: E402
import user_program_language as language  # noqa: E402
import user_program_models as models  # noqa: E402

PROGRAMS = {
    function.__name__: function
    for function in (
        language.small_llm_training,
        language.small_llm_inference,
        language.large_llm_training,
        language.large_llm_inference,
        language.transformers_llm_training,
        language.generate,
        images.efficientnet_amp,
        images.compiled_resnet,
        images.unet,
        images.gan,
        images.gradient_accumulation,
        images.attach,
        images.lightning,
        language.trainer,
        images.jax,
        further.vision_transformer,
        further.policy_gradient,
        further.diffusion,
        further.speech,
        further.graph_network,
        models.translator,
        models.distillation,
        models.clip,
        models.recomputed,
        models.graphs,
        models.server,
        models.two_ranks,
        models.mean_teacher,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=sorted(PROGRAMS))
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    PROGRAMS[options.name](options.seconds)


if __name__ == "__main__":
    main()
