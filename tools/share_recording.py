#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A copy of a recording that does not tell whose machine it was: for a report of a fault, a paper, an example.

    python3 tools/share_recording.py run.joule shared.joule

The host's name, its boot, the folders in its command, the kernel's build and the UUIDs of devices are replaced; what was
measured and what ran is copied as it is. Names of modules, functions and regions stay: read them before you share them.
Follows docs/recording-format.md; needs the package zstandard.
"""

from __future__ import annotations

import hashlib
import re
import struct
import sys
import zlib
from pathlib import Path

import zstandard

MAGIC, HEADER_SIZE = b"\xb5J\r\n", 24
SOURCE, FACTS, ACTIVITY = 1, 4, 7
COMPRESSED = 2


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def sized(data: bytes) -> bytes:
    return varint(len(data)) + data


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def sized(self) -> bytes:
        size = self.varint()
        self.at += size
        return self.data[self.at - size : self.at]

    def rest(self) -> bytes:
        return self.data[self.at :]


def unnamed(value: bytes) -> bytes:
    """The same for the same, so that what belongs together still does."""
    return hashlib.sha256(b"joulemap" + value).hexdigest()[:12].encode()


def shared_source(payload: bytes) -> bytes:
    chunk = Reader(payload)
    head = Reader(chunk.sized())
    identity, _, boot = head.sized(), head.sized(), head.sized()
    numbers_from = head.at
    head.varint(), head.varint()
    numbers = head.data[numbers_from : head.at]
    role = head.sized()
    command = [word.rsplit(b"/", 1)[-1] for word in (head.sized() for _ in range(head.varint()))]
    told = sized(identity) + sized(b"host") + sized(unnamed(boot)) + numbers + sized(role)
    told += varint(len(command)) + b"".join(map(sized, command)) + head.rest()
    return sized(told) + with_other_uuids(chunk.rest())


def with_other_uuids(data: bytes) -> bytes:
    """Of the same length, so nothing else moves."""

    def other(found: re.Match) -> bytes:
        letters = hashlib.sha256(found[0]).hexdigest().encode()
        return b"GPU-" + bytes(ord("-") if old == ord("-") else new for old, new in zip(found[1], letters))

    return re.sub(rb"GPU-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", other, data)


def shared_facts(payload: bytes) -> bytes:
    chunk = Reader(payload)
    facts = []
    for record in [Reader(chunk.sized()) for _ in range(chunk.varint())]:
        name, value = record.sized(), record.sized()
        if name == b"kernel":
            value = re.match(rb"[0-9.]*", value)[0]
        facts.append(sized(name) + sized(value) + record.rest())
    return varint(len(facts)) + b"".join(map(sized, facts)) + chunk.rest()


def shared_chunk(header: bytes, stored: bytes) -> bytes:
    rewrite = {SOURCE: shared_source, FACTS: shared_facts, ACTIVITY: with_other_uuids}.get(header[6])
    if rewrite is None:
        return header + stored
    plain_size = int.from_bytes(header[13:16], "little")
    if header[7] & COMPRESSED:
        stored = zstandard.ZstdDecompressor().decompress(stored, max_output_size=plain_size)
    plain = rewrite(stored)
    stored = zstandard.ZstdCompressor(level=19).compress(plain) if header[7] & COMPRESSED else plain
    head = header[:10] + len(stored).to_bytes(3, "little") + len(plain).to_bytes(3, "little")
    head += struct.pack("<I", zlib.crc32(stored))
    return head + struct.pack("<I", zlib.crc32(head)) + stored


def shared(data: bytes) -> bytes:
    """Bytes that belong to no chunk are left out: what they hold cannot be known."""
    out, at = [], 0
    while (at := data.find(MAGIC, at)) >= 0:
        header = data[at : at + HEADER_SIZE]
        size = int.from_bytes(header[10:13], "little")
        stored = data[at + HEADER_SIZE : at + HEADER_SIZE + size]
        whole = len(header) == HEADER_SIZE and zlib.crc32(header[:20]) == struct.unpack_from("<I", header, 20)[0]
        if not whole or zlib.crc32(stored) != struct.unpack_from("<I", header, 16)[0]:
            at += len(MAGIC)
            continue
        out.append(shared_chunk(header, stored))
        at += HEADER_SIZE + size
    return b"".join(out)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    Path(sys.argv[2]).write_bytes(shared(Path(sys.argv[1]).read_bytes()))
