#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs BERT and ALBERT on the tasks of Smaragdine's study. transformers_study.py starts it under `joulemap record`.

    transformers_load.py cases ...     base sizes, pre-training, fine-tuning and prediction; recorded with every kernel
    transformers_load.py sweep ...     BERT by hidden size and number of layers, fine-tuning; recorded by the counter alone

Weights and tokens are random: 32 texts of 128 tokens. The optimizer is AdamW. In "cases" each training also runs
without its backward pass and update, so that the counter alone measures their energy, independent of attribution.
"""

from __future__ import annotations

import gc
import os
import random
import sys
from typing import Callable, NamedTuple

import torch
import transformers
from study_load import MIN_SPAN_S, Device, LoadLog, remaining_s, make_load_parser, print_progress

BATCH_SIZE, SEQUENCE_LENGTH = 32, 128
HIDDEN, LAYERS = [128, 256, 512, 768, 1024], [2, 4, 8, 12]
TASKS = ["pre-training", "fine-tuning", "prediction"]
WARM_UP_S, FORWARD_SHARE, SETUP_TIME_S = 0.6, 0.3, 1.2
PROBED_STEPS = 20


class ModelSizes(NamedTuple):
    batch: int
    length: int
    vocabulary: int
    hidden: int
    layers: int


def bert_config(sizes: ModelSizes, hidden: int, layers: int):
    return transformers.BertConfig(
        vocab_size=sizes.vocabulary,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=max(1, hidden // 64),
        intermediate_size=4 * hidden,
    )


def albert_config(sizes: ModelSizes):
    """Configuration of albert-base-v2."""
    return transformers.AlbertConfig(
        vocab_size=sizes.vocabulary,
        embedding_size=min(128, sizes.hidden),
        hidden_size=sizes.hidden,
        num_hidden_layers=sizes.layers,
        num_attention_heads=max(1, sizes.hidden // 64),
        intermediate_size=4 * sizes.hidden,
        hidden_dropout_prob=0,
        attention_probs_dropout_prob=0,
    )


class TaskModel:
    """A model with one task: `step` runs one step, `forward` the same without the backward pass and the update."""

    def __init__(self, config, task: str, sizes: ModelSizes, device: str, half: bool = False) -> None:
        torch.manual_seed(0)
        is_bert = isinstance(config, transformers.BertConfig)
        name = "Bert" if is_bert else "Albert"
        kind = "ForPreTraining" if task == "pre-training" else "ForSequenceClassification"
        with torch.device(device):  # initializes weights on the GPU, which is faster
            self.model = getattr(transformers, name + kind)(config)
        self.trains, self._uses_bfloat16, self._device = task != "prediction", half, device
        self.model.train(self.trains)
        tokens = torch.randint(0, sizes.vocabulary, (sizes.batch, sizes.length), device=device)
        answers = torch.randint(0, 2, (sizes.batch,), device=device)
        self.inputs = {"input_ids": tokens}
        if task == "pre-training":
            masked = torch.rand(tokens.shape, device=device) < 0.15
            sentence_label_name = "next_sentence_label" if is_bert else "sentence_order_label"
            self.inputs |= {"labels": torch.where(masked, tokens, -100), sentence_label_name: answers}
        elif self.trains:
            self.inputs["labels"] = answers
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5) if self.trains else None

    def forward(self):
        with torch.autocast(self._device, dtype=torch.bfloat16, enabled=self._uses_bfloat16):
            return self.model(**self.inputs)

    def step(self) -> None:
        if not self.trains:
            with torch.no_grad():
                self.forward()
            return
        self.optimizer.zero_grad(set_to_none=True)
        self.forward().loss.backward()
        self.optimizer.step()


class Study:
    def __init__(self, options) -> None:
        self.options, self.device = options, Device(torch, options.device)
        self.sizes = (
            ModelSizes(2, 8, 100, 64, 2) if options.tiny else ModelSizes(BATCH_SIZE, SEQUENCE_LENGTH, 30522, 768, 12)
        )
        load_metadata = {"sizes": self.sizes._asdict(), "transformers": transformers.__version__, "seed": options.seed}
        self.load_log = LoadLog(options.out, options.device, **load_metadata)

    def _run_task(self, case_fields: dict, make: Callable[[], TaskModel], seconds: float, forward_s: float) -> None:
        try:
            task_model = make()
            self.device.run(task_model.step, min(WARM_UP_S, seconds / 4))
            parameters = sum(p.numel() for p in task_model.model.parameters())
            self.load_log.add(
                **case_fields, part="step", parameters=parameters, **self.device.run(task_model.step, seconds)
            )
            if task_model.trains and forward_s > 0:
                self.device.run(task_model.forward, min(WARM_UP_S, forward_s) / 2)
                self.load_log.add(
                    **case_fields,
                    part="forward",
                    parameters=parameters,
                    **self.device.run(task_model.forward, forward_s),
                )
            print_progress(str(case_fields))
        except Exception:  # noqa: BLE001 - a case that fails must not stop the others
            self.load_log.log_exception(str(case_fields))
        task_model = None
        gc.collect()
        self.device.free_memory()

    def _probe_modules(self, make: Callable[[], TaskModel], seconds: float) -> None:
        """Replays the modules of one training to measure the powers of its kernels, which the other trainings share."""
        try:
            import joulemap as jm  # the package that record puts on the path

            os.environ["JOULEMAP_PROBE"] = str(seconds)
            task_model = make()
            with jm.attach(task_model.model, probe=True):
                for _ in range(PROBED_STEPS):
                    task_model.step()
                self.device.wait()
            print_progress("probed")
        except Exception:  # noqa: BLE001 - results without probing remain valid
            self.load_log.log_exception("probing")
        self.device.free_memory()

    def cases(self) -> None:
        bert = bert_config(self.sizes, self.sizes.hidden, self.sizes.layers)
        models = {"BERT": bert, "ALBERT": albert_config(self.sizes)}
        plan = [(task, name, False) for task in TASKS for name in models] + [("pre-training", "BERT", True)]
        for case_index, (task, name, is_bfloat16) in enumerate(plan):
            forward = FORWARD_SHARE if task != "prediction" else 0.0
            probe_s = self.options.probe_s + SETUP_TIME_S if case_index == 0 and self.options.probe_s > 0 else 0.0
            share_s = (remaining_s(self.options) - probe_s) / (len(plan) - case_index) - SETUP_TIME_S * (
                not self.options.tiny
            )
            seconds = share_s / (1 + forward)
            if seconds < MIN_SPAN_S:
                print_progress("out of time")
                return
            case_fields = {"model": name, "task": task, "precision": "bf16" if is_bfloat16 else "fp32"}
            make = lambda: TaskModel(models[name], task, self.sizes, self.options.device, is_bfloat16)  # noqa: E731, B023
            self._run_task(case_fields, make, seconds, forward * seconds)
            if case_index == 0 and self.options.probe_s > 0:
                self._probe_modules(make, self.options.probe_s)
        self.load_log.add(model="none", task="rest", precision="", part="rest", **self.device.rest(0.4))

    def run_size_sweep(self) -> None:
        plan = [(hidden_width, layers) for hidden_width in HIDDEN for layers in LAYERS]
        if self.options.tiny:
            plan = [(hidden_width, layers) for hidden_width in (32, 64) for layers in (1, 2, 4)]
        random.Random(self.options.seed).shuffle(plan)
        self.load_log.add(model="none", task="rest", precision="", part="rest", **self.device.rest(0.4))
        for case_index, (hidden_size, layers) in enumerate(plan):
            seconds = remaining_s(self.options) / (len(plan) - case_index) - (0.9 if not self.options.tiny else 0.1)
            if seconds < MIN_SPAN_S:
                print_progress("out of time")
                return
            case_fields = {
                "model": "BERT",
                "task": "fine-tuning",
                "precision": "fp32",
                "hidden": hidden_size,
                "layers": layers,
            }
            config = bert_config(self.sizes, hidden_size, layers)
            make = lambda: TaskModel(config, "fine-tuning", self.sizes, self.options.device)  # noqa: E731, B023
            self._run_task(case_fields, make, seconds, 0.0)


def main() -> int:
    parser = make_load_parser(__doc__)
    parser.add_argument("part", choices=["cases", "sweep"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--probe-s", type=float, default=12, help="of probing at most, in cases; 0: none")
    options = parser.parse_args()
    study = Study(options)
    study.cases() if options.part == "cases" else study.run_size_sweep()
    return 1 if study.load_log.document["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
