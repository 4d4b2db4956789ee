# SPDX-License-Identifier: Apache-2.0
"""Continuous batching of transformers under `joulemap record`: its steps are recorded without a change of the program,
and its results do not change."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers")
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from engine_entries import ABORTED, FINISHED, PREEMPTED, Entry, read_request_entries, read_request_models  # noqa: E402
from recorded_program import run_without_joulemap, run_recorded  # noqa: E402

BUILD = ROOT / os.environ.get("JOULEMAP_BUILD", "build")
MODEL_PROGRAM = """
import json, sys, torch, transformers
from transformers.generation.configuration_utils import ContinuousBatchingConfig

torch.manual_seed(0)
config = transformers.LlamaConfig(
    vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
    intermediate_size=64, max_position_embeddings=256, eos_token_id=1, bos_token_id=0, pad_token_id=2)
model = transformers.LlamaForCausalLM(config).eval()

def generation(tokens):
    return transformers.GenerationConfig(max_new_tokens=tokens, do_sample=False, eos_token_id=-1, pad_token_id=2)

def batching(**options):
    return ContinuousBatchingConfig(**{**dict(max_batch_tokens=16, page_size=16, num_blocks=64), **options})

def serve(prompts, tokens=5, **options):
    outputs = model.generate_batch(
        inputs=prompts, generation_config=generation(tokens), continuous_batching_config=batching(**options))
    return {id: output.generated_tokens for id, output in outputs.items()}
"""


def record(folder, program: str):
    recorded_program = run_recorded(BUILD, folder, MODEL_PROGRAM + program, HF_HUB_OFFLINE="1")
    assert recorded_program.code == 0, recorded_program.err
    assert not {"capture_failed", "engine_not_captured"} & set(recorded_program.part.diagnostics), (
        recorded_program.part.of("diagnostic")
    )
    return recorded_program


def test_chunks_of_prompts_share_steps_with_decoding_and_results_do_not_change(tmp_path):
    program = "print(json.dumps(serve([list(range(3, 3 + n)) for n in (4, 40, 9)])))"
    recorded_program = record(tmp_path / "recorded", program)
    unrecorded_process = run_without_joulemap(tmp_path / "alone", MODEL_PROGRAM + program)
    assert recorded_program.out == unrecorded_process.stdout and len(json.loads(recorded_program.out)) == 3
    entries = read_request_entries(recorded_program.part)
    prompts = {id: [entry.prompt for entry in step_entries if entry.prompt] for id, step_entries in entries.items()}
    assert {id: sum(chunks) for id, chunks in prompts.items()} == {
        "batch-0-req_0": 4, "batch-0-req_1": 40, "batch-0-req_2": 9,
    }  # fmt: skip
    assert len(prompts["batch-0-req_1"]) > 1
    for id, request_entries in entries.items():
        assert sum(entry.decoded for entry in request_entries) == 5
        assert [entry.events for entry in request_entries] == [0] * (len(request_entries) - 1) + [FINISHED]
        assert request_entries[-1].context == sum(prompts[id]) + 4  # the last token is not in the cache
    assert set(read_request_models(recorded_program.part).values()) == {"LlamaForCausalLM"}


def test_a_shared_prefix_counts_as_cached(tmp_path):
    program = """
prefix = list(range(3, 67))
manager = model.init_continuous_batching(
    generation_config=generation(2), continuous_batching_config=batching(max_batch_tokens=128))
manager.start()
for prompt in (prefix + [70], prefix + [71, 72]):
    manager.add_request(prompt)
    while not (result := manager.get_result(timeout=1)) or not result.is_finished():
        pass
manager.stop(block=True)
"""
    first_request_entries, second_request_entries = read_request_entries(record(tmp_path, program).part).values()
    assert first_request_entries[0] == Entry(65, 0, 1, 0, 65, 0)
    assert second_request_entries[0] == Entry(2, 64, 1, 0, 66, 0)


def test_a_cancelled_request_is_aborted_and_its_id_can_be_used_again(tmp_path):
    program = """
manager = model.init_continuous_batching(generation_config=generation(150), continuous_batching_config=batching())
manager.start()
id = manager.add_request(list(range(3, 9)), request_id="mine", streaming=True)
next(iter(manager.request_id_iter(id)))
manager.cancel_request(id)
while manager.batch_processor.scheduler.has_pending_requests():
    pass
manager.add_request(list(range(3, 9)), request_id="mine", max_new_tokens=2)
while not (result := manager.get_result("mine", timeout=1)) or len(result.generated_tokens) != 2:
    pass
manager.stop(block=True)
"""
    recorded_program = record(tmp_path, program)
    (entries,) = read_request_entries(recorded_program.part).values()
    events = [entry.events for entry in entries if entry.events]
    assert events == [ABORTED, FINISHED]
    assert len(recorded_program.part.of("request")) == 2


def test_a_full_cache_preempts_a_request_that_computes_its_tokens_again(tmp_path):
    program = """
prompts = [list(range(first, first + 16)) for first in (3, 23, 43)]
serve(prompts, tokens=40, num_blocks=8, max_batch_tokens=64, allow_block_sharing=False, cpu_offload_space=0)
"""
    recorded_program = record(tmp_path, program)
    entries = read_request_entries(recorded_program.part)
    preempted = [entry for step_entries in entries.values() for entry in step_entries if entry.events & PREEMPTED]
    assert preempted and all(entry.context > 0 for entry in preempted)
    for request_entries in entries.values():
        assert sum(entry.decoded for entry in request_entries) == 40
        assert request_entries[-1].events == FINISHED


def test_a_model_that_fails_ends_its_requests_and_the_program_goes_on(tmp_path):
    program = """
calls = 0
def forward(*args, original=model.forward, **kwargs):
    global calls
    calls += 1
    if calls > 3:
        raise ValueError("no more")
    return original(*args, **kwargs)
model.forward = forward
try:
    serve([list(range(3, 9))])
except Exception:
    pass
print("went on")
"""
    recorded_program = record(tmp_path, program)
    assert recorded_program.out.endswith("went on\n")
    for request_entries in read_request_entries(recorded_program.part).values():
        assert request_entries[-1].events == ABORTED
