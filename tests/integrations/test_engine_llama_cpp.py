# SPDX-License-Identifier: Apache-2.0
"""llama-cpp-python under `joulemap record`, with a random model: its steps are recorded without a change of the program,
and its results do not change."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("llama_cpp")
gguf = pytest.importorskip("gguf")
import numpy as np  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from engine_entries import ABORTED, FINISHED, Entry, read_request_entries, read_request_models  # noqa: E402
from recorded_program import run_without_joulemap, run_recorded  # noqa: E402

BUILD = ROOT / os.environ.get("JOULEMAP_BUILD", "build")
PROGRAM = """
import sys
from llama_cpp import Llama
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

def make(**options):
    return Llama(sys.argv[1], n_ctx=128, n_batch=16, n_threads=1, verbose=False, seed=1, **options)

def complete(llama, prompt, tokens, **options):
    return llama.create_completion(
        prompt, max_tokens=tokens, temperature=0, logit_bias={2: -100.0}, **options)  # never the end of the text

llama = make()
print(complete(llama, "abcdefghijklmnopqrst", 5))
print(complete(llama, "abcdefghijkl0123456789", 4))
closed = complete(llama, "hello", 40, stream=True)
next(closed)
closed.close()
print(len(list(complete(llama, "world", 3, stream=True))))

tokens = []
for token in llama.generate([5, 6, 7, 8], temp=0):
    tokens.append(token)
    if len(tokens) == 3:
        break
llama.reset()
llama.eval([9, 10, 11])
llama.eval([llama.sample(temp=0)])
tokens.append(llama.sample(temp=0))
llama.reset()
print(tokens)

drafts = make(draft_model=LlamaPromptLookupDecoding(num_pred_tokens=4), logits_all=True)
print(complete(drafts, "abababababababab", 8)["usage"])
print(len(make(embedding=True).create_embedding(["abc", "defgh"])["data"]))
complete(make(), [1] + [70] * 16, 2)  # a token more than a step
try:
    llama.eval(list(range(3, 203)))  # more than the context
except Exception as error:
    print(type(error).__name__)
"""


def write_model(path: Path, width: int = 32, layers: int = 2, heads: int = 4, hidden: int = 64) -> None:
    """A Llama with random weights whose tokens are bytes."""
    draw = np.random.default_rng(0)
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(256)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(hidden)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(width // heads)
    writer.add_file_type(0)
    writer.add_tokenizer_model("llama")
    writer.add_vocab_size(len(tokens))
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([2, 3, 3] + [6] * 256)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    shapes = {"token_embd": (len(tokens), width), "output": (len(tokens), width), "output_norm": (width,)}
    for layer in range(layers):
        block = f"blk.{layer}."
        shapes |= {block + name: (width,) for name in ("attn_norm", "ffn_norm")}
        shapes |= {block + name: (width, width) for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
        shapes |= {block + name: (hidden, width) for name in ("ffn_gate", "ffn_up")}
        shapes[block + "ffn_down"] = (width, hidden)
    for name, shape in shapes.items():
        values = np.ones(shape) if len(shape) == 1 else draw.normal(0, 1 / np.sqrt(shape[-1]), shape)
        writer.add_tensor(name + ".weight", values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_model(path)
    return path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, model):
    recorded_program = run_recorded(BUILD, tmp_path_factory.mktemp("llama"), PROGRAM, str(model))
    assert recorded_program.code == 0, recorded_program.err
    assert not {"capture_failed", "engine_not_captured"} & set(recorded_program.part.diagnostics), (
        recorded_program.part.of("diagnostic")
    )
    return recorded_program


@pytest.fixture(scope="module")
def entries(recorded):
    return read_request_entries(recorded.part)


def find_entries(entries, kind: str) -> list[list[Entry]]:
    return [request_entries for name, request_entries in entries.items() if name.startswith(kind)]


def test_results_do_not_change(recorded, model, tmp_path):
    def without_ids(text: str) -> list[str]:
        return [line[line.find("'choices'") :] for line in text.splitlines()]

    assert without_ids(recorded.out) == without_ids(run_without_joulemap(tmp_path, PROGRAM, str(model)).stdout)


def test_a_completion_computes_its_prompt_in_chunks_and_a_token_in_each_step(recorded, entries):
    first_completion_entries = find_entries(entries, "completion")[0]
    # 20 bytes, a blank before them and the begin of the text.
    assert [entry.prompt for entry in first_completion_entries if entry.prompt] == [16, 8]
    assert first_completion_entries[1].decoded == 1 and first_completion_entries[0].decoded == 0
    decoded = sum(entry.decoded for entry in first_completion_entries)
    assert f"'completion_tokens': {decoded}" in recorded.out
    assert first_completion_entries[-1].events == FINISHED
    assert read_request_models(recorded.part)["completion-0"] == "tiny.gguf"


def test_the_last_chunk_of_a_prompt_may_be_a_single_token(entries):
    assert [entry[:3] for entry in find_entries(entries, "completion")[5]][:3] == [(16, 0, 0), (1, 0, 1), (0, 0, 1)]


def test_the_common_prefix_with_the_request_before_is_cached(entries):
    second_completion_entries = find_entries(entries, "completion")[1]
    assert second_completion_entries[0].cached == 16 and sum(entry.prompt for entry in second_completion_entries) == 10


def test_a_stream_that_the_program_closes_is_aborted_and_one_that_ends_is_not(entries):
    closed_stream_entries, finished_stream_entries = find_entries(entries, "completion")[2:4]
    assert closed_stream_entries[-1].events == ABORTED
    assert finished_stream_entries[-1].events == FINISHED


def test_generate_and_eval_are_requests(entries):
    (generated,), (evaluated, _) = find_entries(entries, "generate"), find_entries(entries, "eval")
    assert [entry[:3] for entry in generated] == [(4, 0, 1), (0, 0, 1), (0, 0, 1), (0, 0, 0)]
    assert [entry[:3] for entry in evaluated] == [(3, 0, 1), (0, 0, 1), (0, 0, 0)]
    assert generated[-1].events == evaluated[-1].events == FINISHED


def test_draft_tokens_that_are_not_accepted_are_rejected(entries):
    speculative = find_entries(entries, "completion")[4]
    assert sum(entry.decoded for entry in speculative) == 8
    assert sum(entry.rejected for entry in speculative) > 0
    assert speculative[-1].events == FINISHED


def test_each_text_of_an_embedding_is_a_request(entries):
    embedded = find_entries(entries, "embed")
    assert len(embedded) == 2
    assert all(
        len(request_entries) == 1 and request_entries[0].prompt > 0 and request_entries[0].events == FINISHED
        for request_entries in embedded
    )
