# SPDX-License-Identifier: Apache-2.0
"""Lists the operations of a training step of a BERT-base encoder, for `joulemap predict`: fp32.json and bf16.json.

Needs PyTorch, but no GPU: the meta device stores shapes without data.
"""

import json

import torch

import joulemap as jm

layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True, device="meta")
encoder = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
tokens = torch.zeros(32, 128, 768, device="meta")
for name, autocast in (("fp32.json", None), ("bf16.json", torch.bfloat16)):
    operations = jm.list_operations(encoder, tokens, training=True, optimizer="adamw", autocast=autocast)
    with open(name, "w", encoding="utf-8") as file:
        json.dump(operations, file)
