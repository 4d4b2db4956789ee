# SPDX-License-Identifier: Apache-2.0
"""Typical recurrent networks with random weights, used to evaluate predictions of recurrent layers."""

from __future__ import annotations

from typing import Any

TOKENS, FEATURES, PAIRS = "tokens", "features", "pairs"
WORDS, LETTERS = 10_000, 96
# Family: name, input type, feature width, sequence lengths with the usual one first.
NETWORKS = {
    "LSTM language model": ("lstm-lm", TOKENS, 0, (64, 128)),
    "GRU translation": ("gru-seq2seq", PAIRS, 0, (32, 64)),
    "BiLSTM speech": ("bilstm-speech", FEATURES, 161, (256, 400)),
    "BiGRU text": ("bigru-text", TOKENS, 0, (128, 200)),
    "RNN characters": ("rnn-characters", TOKENS, 0, (100, 200)),
    "LSTM series": ("lstm-series", FEATURES, 16, (96, 192)),
}
READS = {name: (reads, width) for name, reads, width, _ in NETWORKS.values()}


def make(torch: Any, name: str) -> Any:
    nn = torch.nn

    class Words(nn.Module):
        """Embedding, recurrent layers, and a score for each word at each time step or for the whole text."""

        def __init__(self, layers: Any, words: int, width: int, out: int, classes: int, whole: bool) -> None:
            super().__init__()
            self.embedding, self.layers, self.head = nn.Embedding(words, width), layers, nn.Linear(out, classes)
            self._whole = whole

        def forward(self, tokens):
            y, _ = self.layers(self.embedding(tokens))
            return self.head(y.mean(1) if self._whole else y)

    class Translation(nn.Module):
        """An encoder whose last state initializes the decoder."""

        def __init__(self) -> None:
            super().__init__()
            self.source, self.target = nn.Embedding(WORDS, 256), nn.Embedding(WORDS, 256)
            self.encoder = nn.GRU(256, 512, 2, batch_first=True)
            self.decoder = nn.GRU(256, 512, 2, batch_first=True)
            self.head = nn.Linear(512, WORDS)

        def forward(self, source, target):
            _, state = self.encoder(self.source(source))
            y, _ = self.decoder(self.target(target), state)
            return self.head(y)

    class Frames(nn.Module):
        """Recurrent layers over feature frames, with scores for each frame or for the last one."""

        def __init__(self, layers: Any, out: int, classes: int, last: bool) -> None:
            super().__init__()
            self.layers, self.head, self._last = layers, nn.Linear(out, classes), last

        def forward(self, x):
            y, _ = self.layers(x)
            return self.head(y[:, -1] if self._last else y)

    first = {"batch_first": True}
    if name == "lstm-lm":
        return Words(nn.LSTM(650, 650, 2, dropout=0.5, **first), WORDS, 650, 650, WORDS, False)
    if name == "gru-seq2seq":
        return Translation()
    if name == "bilstm-speech":
        return Frames(nn.LSTM(161, 512, 3, bidirectional=True, **first), 1024, 29, False)
    if name == "bigru-text":
        return Words(nn.GRU(300, 256, 1, bidirectional=True, **first), WORDS, 300, 512, 5, True)
    if name == "rnn-characters":
        return Words(nn.RNN(128, 512, 2, **first), LETTERS, 128, 512, LETTERS, False)
    return Frames(nn.LSTM(16, 128, 2, **first), 128, 8, True)


def inputs_of(torch: Any, device: str, name: str, batch: int, steps: int, dtype: Any) -> tuple:
    reads, width = READS[name]
    if reads == FEATURES:
        return (torch.randn(batch, steps, width, device=device, dtype=dtype),)
    tokens = [torch.randint(0, LETTERS, (batch, steps), device=device) for _ in range(1 + (reads == PAIRS))]
    return tuple(tokens)
