# SPDX-License-Identifier: Apache-2.0
"""Generators of ONNX Runtime GenAI under `joulemap record`, with a random model: their steps are recorded without a
change of the program, and results do not change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime_genai")
pytest.importorskip("onnx_ir")
transformers = pytest.importorskip("transformers")
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from engine_entries import FINISHED, Entry, read_request_entries, read_request_models  # noqa: E402
from recorded_program import run_without_joulemap, run_recorded  # noqa: E402

BUILD = ROOT / os.environ.get("JOULEMAP_BUILD", "build")
PROGRAM = """
import sys
import numpy as np
import onnxruntime_genai as og

model = og.Model(sys.argv[1])

def generator(**options):
    params = og.GeneratorParams(model)
    params.set_search_options(**options)
    return og.Generator(model, params)

def generate(batch, prompt, new, **options):
    one = generator(max_length=prompt + new, batch_size=batch, **options)
    tokens = np.arange(3, 3 + batch * prompt, dtype=np.int32)
    one.append_tokens(tokens.reshape(batch, prompt) if batch > 1 else tokens)
    while not one.is_done():
        one.generate_next_token()
    print([one.get_sequence(index).tolist() for index in range(batch)])

generate(1, 10, 4)
generate(3, 8, 2)
generate(1, 6, 3, num_beams=3)
chat = generator(max_length=60)
chat.append_tokens(np.arange(3, 9, dtype=np.int32))
for _ in range(3):
    chat.generate_next_token()
chat.append_tokens(np.arange(20, 24, dtype=np.int32))
for _ in range(2):
    chat.generate_next_token()
print(chat.get_sequence(0).tolist())
chat.rewind_to(6)
chat.append_tokens(np.arange(30, 32, dtype=np.int32))
chat.generate_next_token()
print(chat.get_sequence(0).tolist())
try:
    og.Generator(model, 3)
except TypeError:
    print("TypeError")
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = tmp_path_factory.mktemp("model")
    config = transformers.LlamaConfig(
        vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
        intermediate_size=64, max_position_embeddings=256, bos_token_id=0, eos_token_id=1, pad_token_id=2,
    )  # fmt: skip
    transformers.set_seed(0)
    transformers.LlamaForCausalLM(config).save_pretrained(folder / "torch")
    words = {"<s>": 0, "</s>": 1, "<pad>": 2, **{f"w{number}": number for number in range(3, 96)}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    ).save_pretrained(folder / "torch")
    builder = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-m", "tiny", "-p", "fp32", "-e", "cpu"]
    folders = ["-i", str(folder / "torch"), "-o", str(folder / "onnx"), "-c", str(folder / "cache")]
    builder_process = subprocess.run(builder + folders, capture_output=True, text=True, timeout=600)
    assert builder_process.returncode == 0, builder_process.stderr
    return folder / "onnx"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, model):
    recorded_program = run_recorded(BUILD, tmp_path_factory.mktemp("genai"), PROGRAM, str(model))
    assert recorded_program.code == 0, recorded_program.err
    assert not {"capture_failed", "engine_not_captured"} & set(recorded_program.part.diagnostics), (
        recorded_program.part.of("diagnostic")
    )
    return recorded_program


@pytest.fixture(scope="module")
def entries(recorded):
    return list(read_request_entries(recorded.part).values())


FINISHED_ENTRY = Entry(0, 0, 0, 0, 0, FINISHED)


def test_results_do_not_change(recorded, model, tmp_path):
    assert recorded.out == run_without_joulemap(tmp_path, PROGRAM, str(model)).stdout


def test_the_first_token_comes_with_the_prompt(recorded, entries):
    assert entries[0] == [Entry(10, 0, 1, 0, 10, 0), *(Entry(0, 0, 1, 0, 10 + i, 0) for i in (1, 2, 3)), FINISHED_ENTRY]
    assert read_request_models(recorded.part)["generator-0-0"] == "llama"


def test_each_sequence_of_a_batch_is_a_request(entries):
    assert entries[1:4] == [[Entry(8, 0, 1, 0, 8, 0), Entry(0, 0, 1, 0, 9, 0), FINISHED_ENTRY]] * 3


def test_beams_that_are_not_returned_are_rejected_tokens(entries):
    assert entries[4][:3] == [Entry(6, 0, 1, 0, 6, 0), Entry(0, 0, 1, 2, 7, 0), Entry(0, 0, 1, 2, 8, 0)]


def test_a_second_turn_computes_only_its_tokens(entries):
    assert [entry[:3] for entry in entries[5]] == [(6, 0, 1), (0, 0, 1), (0, 0, 1), (4, 0, 1), (0, 0, 1), (0, 0, 0)]
    assert entries[5][-1] == FINISHED_ENTRY


def test_after_a_rewind_the_tokens_before_it_are_cached(entries):
    assert entries[6] == [Entry(2, 6, 1, 0, 8, 0)]
