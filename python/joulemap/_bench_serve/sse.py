# SPDX-License-Identifier: Apache-2.0
"""Server-sent events, and the completions of an OpenAI-compatible server in them. Pure: bytes in, chunks out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Optional

from .outcome import RequestFailure

MAX_EVENT_BYTES = 1 << 20
STREAM_END = "[DONE]"


class SseParser:
    """Splits a stream into the data of its events. Lines end with CR, LF or both; an event ends with an empty line."""

    def __init__(self) -> None:
        self._partial_line = b""
        self._data_lines: list[bytes] = []
        self._event_bytes = 0

    def feed(self, piece: bytes) -> list[str]:
        """The data of the events that `piece` completes."""
        buffered_bytes = self._partial_line + piece
        ends_with_carriage_return = buffered_bytes.endswith(b"\r")  # perhaps an LF follows
        lines = (
            buffered_bytes[: len(buffered_bytes) - ends_with_carriage_return]
            .replace(b"\r\n", b"\n")
            .replace(b"\r", b"\n")
            .split(b"\n")
        )
        self._partial_line = lines.pop() + (b"\r" if ends_with_carriage_return else b"")
        event_data = []
        for line in lines:
            self._event_bytes += len(line)
            if line.startswith(b"data:"):
                self._data_lines.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif not line:
                if self._data_lines:
                    event_data.append(b"\n".join(self._data_lines).decode("utf-8", "replace"))
                self._data_lines, self._event_bytes = [], 0
        if self._event_bytes + len(self._partial_line) > MAX_EVENT_BYTES:
            raise RequestFailure("malformed", f"an event of more than {MAX_EVENT_BYTES} bytes")
        return event_data


@dataclass(frozen=True)
class CompletionChunk:
    """What an event of a stream of completions contains."""

    has_text: bool = False
    is_last: bool = False  # the server says why it ended
    prompt_tokens: Optional[int] = None
    output_tokens: Optional[int] = None


def parse_chunk(data: str) -> CompletionChunk:
    """Raises RequestFailure if the event is an error, or no chunk of a completion."""
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        raise RequestFailure("malformed", f"no JSON: {sanitize_server_text(data)}") from None
    if not isinstance(event, dict):
        raise RequestFailure("malformed", f"no JSON object: {sanitize_server_text(data)}")
    if event.get("error"):
        raise RequestFailure("error_event", _error_text(event["error"]))
    choices, usage = event.get("choices", []), event.get("usage")
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        raise RequestFailure("malformed", f"no list of choices: {sanitize_server_text(data)}")
    if not choices and not isinstance(usage, dict):
        raise RequestFailure("malformed", f"neither choices nor usage: {sanitize_server_text(data)}")
    usage = usage if isinstance(usage, dict) else {}
    return CompletionChunk(
        any(_has_text(choice) for choice in choices),
        any(choice.get("finish_reason") is not None for choice in choices),
        _valid_token_count(usage.get("prompt_tokens")),
        _valid_token_count(usage.get("completion_tokens")),
    )


def _has_text(choice: dict) -> bool:
    """Whether a choice has a part of the answer: text, or in a chat a delta with content, reasoning or tool calls."""
    if choice.get("text"):
        return True
    delta = choice.get("delta")
    text_keys = ("content", "reasoning_content", "reasoning", "tool_calls")
    return isinstance(delta, dict) and any(delta.get(text_key) for text_key in text_keys)


def _valid_token_count(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _error_text(error: Any) -> str:
    return sanitize_server_text(str(error.get("message", error)) if isinstance(error, dict) else str(error))


def sanitize_server_text(text: str) -> str:
    """Text of a server for a message: one line without control characters."""
    printable_text = "".join(character if character.isprintable() else " " for character in text[:200])
    return " ".join(printable_text.split())
