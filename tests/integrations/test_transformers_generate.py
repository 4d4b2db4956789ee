"""`generate` of transformers under `joulemap record`: its steps are recorded in all decoding modes, without a change of
the program, and its results do not change."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from recorded_program import run_without_joulemap, run_recorded  # noqa: E402

PROGRAM = """
import json, torch, transformers

torch.manual_seed(0)
config = transformers.LlamaConfig(
    vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    intermediate_size=64, max_position_embeddings=128, eos_token_id=None, bos_token_id=1, pad_token_id=0)
model = transformers.LlamaForCausalLM(config).eval()
assistant = transformers.LlamaForCausalLM(config).eval()
assistant.load_state_dict(model.state_dict())
prompts = torch.randint(2, 64, (3, 10))
mask = torch.ones_like(prompts)
mask[1, :4] = 0
fixed = dict(attention_mask=mask, min_new_tokens=6, max_new_tokens=6)
outputs = [
    model.generate(prompts, **fixed, do_sample=False),
    model.generate(prompts, **fixed, do_sample=True, top_k=8),
    model.generate(prompts, **fixed, num_beams=4, do_sample=False),
    model.generate(prompts[:1], max_new_tokens=6, assistant_model=assistant, do_sample=False),
    model.generate(input_ids=prompts[:1], max_new_tokens=1, do_sample=False),
    model.generate(prompts, **{**fixed, "attention_mask": mask.float()}, prefill_chunk_size=5, do_sample=False),
]
cache = transformers.DynamicCache()
turn = model.generate(prompts[:1], past_key_values=cache, max_new_tokens=4, do_sample=False)
outputs.append(model.generate(
    torch.cat([turn, prompts[1:2]], 1), past_key_values=cache, max_new_tokens=2, do_sample=False))

def fail(*args):
    raise ValueError("stop")

try:
    model.generate(prompts[:1], max_new_tokens=6, stopping_criteria=[fail], do_sample=False)
except ValueError:
    pass
print(json.dumps([output.tolist() for output in outputs]))
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    build = ROOT / os.environ.get("JOULEMAP_BUILD", "build")
    return run_recorded(build, tmp_path_factory.mktemp("generate"), PROGRAM, HF_HUB_OFFLINE="1")


def entries_of_call(recorded, call: int) -> dict[str, list[tuple[int, ...]]]:
    """By request: (prompt, cached, decoded, rejected, context, events) of each step."""
    names = {}
    for line in recorded.part.of("request"):
        _, number, id, _ = line.split(" ", 3)
        names[int(number)] = id
    entries_by_request: dict[str, list[tuple[int, ...]]] = {}
    for line in recorded.part.of("in-step"):
        _, request, *entry_fields = map(int, line.split())
        if names[request].startswith(f"generate-{call}-"):
            entries_by_request.setdefault(names[request], []).append(tuple(entry_fields))
    return entries_by_request


def test_results_do_not_change(recorded, tmp_path):
    assert recorded.code == 0, recorded.err
    assert not {"capture_failed", "engine_not_captured"} & set(recorded.part.diagnostics), recorded.part.of(
        "diagnostic"
    )
    unrecorded_process = run_without_joulemap(tmp_path, PROGRAM)
    assert json.loads(recorded.out.splitlines()[-1]) == json.loads(unrecorded_process.stdout.splitlines()[-1])


@pytest.mark.parametrize("call", [0, 1], ids=["greedy", "sampling"])
def test_a_step_decodes_one_token_of_each_sequence(recorded, call):
    requests = entries_of_call(recorded, call)
    assert list(requests) == [f"generate-{call}-{number}" for number in range(3)]
    for number, steps in enumerate(requests.values()):
        assert [step[0] for step in steps] == [6 if number == 1 else 10, 0, 0, 0, 0, 0]  # padding is no prompt
        assert [step[2] for step in steps] == [1] * 6
        assert [step[5] for step in steps] == [0] * 5 + [1]
        assert [step[4] for step in steps] == [10, 11, 12, 13, 14, 15]


def test_beams_that_are_not_the_output_are_rejected_tokens(recorded):
    for steps in entries_of_call(recorded, 2).values():
        assert [step[2] for step in steps] == [1] * 6
        assert [step[3] for step in steps] == [0] + [3] * 5


def test_assisted_decoding_reports_accepted_tokens_once(recorded):
    (steps,) = entries_of_call(recorded, 3).values()
    assert sum(step[2] for step in steps) >= 6  # the last step may accept more tokens than are returned
    assert len(steps) < 6  # an assistant of equal weights is always right
    assert steps[-1][4] == 10 + sum(step[2] for step in steps) - 1  # the last token is not in the cache
    assert steps[-1][5] == 1


def test_a_single_token_is_a_prefill(recorded):
    (steps,) = entries_of_call(recorded, 4).values()
    assert steps == [(10, 0, 1, 0, 10, 1)]


def test_a_chunk_of_a_padded_prompt_counts_its_tokens(recorded):
    first_request_steps, second_request_steps, _ = entries_of_call(recorded, 5).values()
    assert [step[0] for step in first_request_steps] == [5, 5, 0, 0, 0, 0, 0]
    assert [step[0] for step in second_request_steps] == [1, 5, 0, 0, 0, 0, 0]
    assert [step[4] for step in second_request_steps] == [5, 10, 11, 12, 13, 14, 15]


def test_tokens_in_the_cache_of_an_earlier_turn_are_cached(recorded):
    (steps,) = entries_of_call(recorded, 7).values()
    assert steps == [(11, 13, 1, 0, 24, 0), (0, 0, 1, 0, 25, 1)]  # the last token of the turn was not in the cache


def test_a_generate_that_raises_is_aborted(recorded):
    (steps,) = entries_of_call(recorded, 8).values()
    assert [step[5] for step in steps] == [4]
