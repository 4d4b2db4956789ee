# SPDX-License-Identifier: Apache-2.0
"""Typical recurrent networks with random weights, used to evaluate predictions of recurrent layers."""

from __future__ import annotations

from typing import Any

TOKEN_INPUT, FEATURE_INPUT, TOKEN_PAIR_INPUT = "tokens", "features", "pairs"
WORD_VOCABULARY_SIZE, LETTER_VOCABULARY_SIZE = 10_000, 96
# Family: name, input type, feature width, sequence lengths with the usual one first.
RECURRENT_NETWORKS = {
    "LSTM language model": ("lstm-lm", TOKEN_INPUT, 0, (64, 128)),
    "GRU translation": ("gru-seq2seq", TOKEN_PAIR_INPUT, 0, (32, 64)),
    "BiLSTM speech": ("bilstm-speech", FEATURE_INPUT, 161, (256, 400)),
    "BiGRU text": ("bigru-text", TOKEN_INPUT, 0, (128, 200)),
    "RNN characters": ("rnn-characters", TOKEN_INPUT, 0, (100, 200)),
    "LSTM series": ("lstm-series", FEATURE_INPUT, 16, (96, 192)),
}
INPUT_KINDS = {name: (input_kind, width) for name, input_kind, width, _ in RECURRENT_NETWORKS.values()}


def make_recurrent_network(torch: Any, name: str) -> Any:
    nn = torch.nn

    class TokenNetwork(nn.Module):
        """Embedding, recurrent layers, and a score for each word at each time step or for the whole text."""

        def __init__(
            self,
            layers: Any,
            vocabulary_size: int,
            width: int,
            output_width: int,
            classes: int,
            has_output_per_text: bool,
        ) -> None:
            super().__init__()
            self.embedding, self.layers, self.head = (
                nn.Embedding(vocabulary_size, width),
                layers,
                nn.Linear(output_width, classes),
            )
            self._has_output_per_text = has_output_per_text

        def forward(self, tokens):
            y, _ = self.layers(self.embedding(tokens))
            return self.head(y.mean(1) if self._has_output_per_text else y)

    class TranslationNetwork(nn.Module):
        """An encoder whose last state initializes the decoder."""

        def __init__(self) -> None:
            super().__init__()
            self.source, self.target = nn.Embedding(WORD_VOCABULARY_SIZE, 256), nn.Embedding(WORD_VOCABULARY_SIZE, 256)
            self.encoder = nn.GRU(256, 512, 2, batch_first=True)
            self.decoder = nn.GRU(256, 512, 2, batch_first=True)
            self.head = nn.Linear(512, WORD_VOCABULARY_SIZE)

        def forward(self, source, target):
            _, state = self.encoder(self.source(source))
            y, _ = self.decoder(self.target(target), state)
            return self.head(y)

    class FrameNetwork(nn.Module):
        """Recurrent layers over feature frames, with scores for each frame or for the last one."""

        def __init__(self, layers: Any, output_width: int, classes: int, uses_last_frame: bool) -> None:
            super().__init__()
            self.layers, self.head, self._uses_last_frame = layers, nn.Linear(output_width, classes), uses_last_frame

        def forward(self, x):
            y, _ = self.layers(x)
            return self.head(y[:, -1] if self._uses_last_frame else y)

    batch_first = {"batch_first": True}
    if name == "lstm-lm":
        return TokenNetwork(
            nn.LSTM(650, 650, 2, dropout=0.5, **batch_first),
            WORD_VOCABULARY_SIZE,
            650,
            650,
            WORD_VOCABULARY_SIZE,
            False,
        )
    if name == "gru-seq2seq":
        return TranslationNetwork()
    if name == "bilstm-speech":
        return FrameNetwork(nn.LSTM(161, 512, 3, bidirectional=True, **batch_first), 1024, 29, False)
    if name == "bigru-text":
        return TokenNetwork(
            nn.GRU(300, 256, 1, bidirectional=True, **batch_first), WORD_VOCABULARY_SIZE, 300, 512, 5, True
        )
    if name == "rnn-characters":
        return TokenNetwork(
            nn.RNN(128, 512, 2, **batch_first), LETTER_VOCABULARY_SIZE, 128, 512, LETTER_VOCABULARY_SIZE, False
        )
    return FrameNetwork(nn.LSTM(16, 128, 2, **batch_first), 128, 8, True)


def make_recurrent_inputs(torch: Any, device: str, name: str, batch: int, steps: int, dtype: Any) -> tuple:
    input_kind, width = INPUT_KINDS[name]
    if input_kind == FEATURE_INPUT:
        return (torch.randn(batch, steps, width, device=device, dtype=dtype),)
    tokens = [
        torch.randint(0, LETTER_VOCABULARY_SIZE, (batch, steps), device=device)
        for _ in range(1 + (input_kind == TOKEN_PAIR_INPUT))
    ]
    return tuple(tokens)
