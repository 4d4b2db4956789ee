# SPDX-License-Identifier: Apache-2.0
"""Language models of user_program_set.py: Llama-shaped in plain PyTorch, transformers, its generate and its Trainer."""

from __future__ import annotations

import tempfile

from user_program_loop import TimedLoop, checksum_of_module, checksum_of_tensors, set_up_torch


def llama(torch, width: int, layers: int, heads: int, vocabulary: int = 32000):
    """A Llama-shaped decoder in plain PyTorch: RMSNorm, rotary positions, SwiGLU."""
    nn, functional = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(width, 3 * width, bias=False)
            self.out = nn.Linear(width, width, bias=False)

        def forward(self, x, cos, sin):
            batch, length, _ = x.shape
            q, k, v = self.qkv(x).view(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            q, k = (turned * cos + torch.cat((-turned[..., 1::2], turned[..., ::2]), -1) * sin for turned in (q, k))
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(batch, length, width))

    class FeedForward(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.up = (nn.Linear(width, 4 * width, bias=False) for _ in range(2))
            self.down = nn.Linear(4 * width, width, bias=False)

        def forward(self, x):
            return self.down(functional.silu(self.gate(x)) * self.up(x))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
            self.attention, self.feed_forward = Attention(), FeedForward()

        def forward(self, x, cos, sin):
            x = x + self.attention(self.norm1(x), cos, sin)
            return x + self.feed_forward(self.norm2(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(vocabulary, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm = nn.RMSNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)

        def forward(self, tokens):
            length, size = tokens.shape[1], width // heads
            angles = torch.arange(length, device=tokens.device)[:, None] * 0.01 ** (
                torch.arange(size, device=tokens.device) / size
            )
            x = self.embed(tokens)
            cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
            for block in self.blocks:
                x = block(x, cos, sin)
            return self.head(self.norm(x))

    return Model()


def train_llama(seconds: float, width: int, layers: int, batch: int, length: int) -> None:
    torch = set_up_torch()
    model = llama(torch, width, layers, width // 64).cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randint(0, 32000, (batch, length + 1), device="cuda")
    loop = TimedLoop(seconds, checksum_of_module(model))
    for _ in loop:
        loss = torch.nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1).float(), tokens[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
    loop.print()


def small_llm_training(seconds: float) -> None:
    train_llama(seconds, width=512, layers=8, batch=8, length=512)


def large_llm_training(seconds: float) -> None:
    train_llama(seconds, width=2048, layers=12, batch=8, length=1024)


def small_llm_inference(seconds: float) -> None:
    torch = set_up_torch()
    model = llama(torch, 512, 8, 8).cuda().bfloat16().eval()
    tokens = torch.randint(0, 32000, (8, 512), device="cuda")
    logits = None
    loop = TimedLoop(seconds, lambda: checksum_of_tensors([logits]))
    with torch.inference_mode():
        for _ in loop:
            logits = model(tokens)
            logits[:, -1].argmax(-1).tolist()
    loop.print()


def hf_llama(torch, hidden: int, layers: int):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=hidden, intermediate_size=int(2.75 * hidden) // 64 * 64, num_hidden_layers=layers,
        num_attention_heads=hidden // 64, num_key_value_heads=max(1, hidden // 256), vocab_size=32000,
        max_position_embeddings=2048,
    )
    return LlamaForCausalLM(config).to(torch.bfloat16).cuda()


def transformers_llm_training(seconds: float) -> None:
    torch = set_up_torch()
    model = hf_llama(torch, 1024, 12)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, 32000, (8, 512), device="cuda")
    loop = TimedLoop(seconds, checksum_of_module(model))
    for _ in loop:
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    loop.print()


def large_llm_inference(seconds: float) -> None:
    torch = set_up_torch()
    model = hf_llama(torch, 4096, 16).eval()
    tokens = torch.randint(0, 32000, (8, 1024), device="cuda")
    logits = None
    loop = TimedLoop(seconds, lambda: checksum_of_tensors([logits[:, -1]]))
    with torch.inference_mode():
        for _ in loop:
            logits = model(input_ids=tokens).logits
            logits[:, -1].argmax(-1).tolist()
    loop.print()


def generate(seconds: float) -> None:
    torch = set_up_torch()
    model = hf_llama(torch, 1024, 12).eval()
    prompt = torch.randint(0, 32000, (4, 64), device="cuda")
    tokens = None
    loop = TimedLoop(seconds, lambda: checksum_of_tensors([tokens]))
    with torch.inference_mode():
        for _ in loop:
            tokens = model.generate(
                prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=16, do_sample=False, pad_token_id=0
            )
    loop.print()


def trainer(seconds: float) -> None:
    torch = set_up_torch()
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

    model = BertForSequenceClassification(BertConfig(num_hidden_layers=6, hidden_size=512, num_attention_heads=8))
    rows = [
        {"input_ids": torch.randint(0, 30000, (128,)), "attention_mask": torch.ones(128).long(), "labels": index % 2}
        for index in range(2048)
    ]
    loop = TimedLoop(seconds, checksum_of_module(model))
    steps = iter(loop)

    class StopCallback(TrainerCallback):
        def on_step_begin(self, arguments, state, control, **_):
            control.should_training_stop = next(steps, None) is None

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, per_device_train_batch_size=32, num_train_epochs=1000, bf16=True, report_to=[], save_strategy="no",
            logging_steps=10, disable_tqdm=True,
        )
        Trainer(model, arguments, train_dataset=rows, callbacks=[StopCallback()]).train()
    loop.print()
