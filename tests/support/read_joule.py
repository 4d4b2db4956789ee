"""Reads a .joule file as docs/reference/recording-format.md describes it, without any code of Joulemap.

    python read_joule.py run.joule

Prints its contents, one line per record. Skips damaged chunks without reporting them.
"""

from __future__ import annotations

import struct
import sys
import zlib

import zstandard

MAGIC = b"\xb5J\r\n"


class FieldDecoder:
    """Decodes consecutive varints, numbers and texts."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take_bytes(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def u8(self) -> int:
        return self.take_bytes(1)[0]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.u8()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def svarint(self) -> int:
        code = self.varint()
        return code >> 1 if code % 2 == 0 else -(code >> 1) - 1

    def f64(self) -> str:
        return repr(struct.unpack("<d", self.take_bytes(8))[0]).removesuffix(".0")

    def text(self) -> str:
        return self.take_bytes(self.varint()).decode()

    def optional(self, read):
        return read() if self.u8() else "-"

    def record(self) -> FieldDecoder:
        return FieldDecoder(self.take_bytes(self.varint()))

    def at_end(self) -> bool:
        return self.at >= len(self.data)

    def records(self) -> list[FieldDecoder]:
        return [self.record() for _ in range(self.varint())]

    def column(self, count: int) -> list[int]:
        if count == 0:
            return []
        head = self.u8()
        k, steps, grid = head & 63, head & 64, head & 128
        multiplier, divisor = (self.varint(), self.varint()) if grid else (1, 1)
        expected, slope = self.svarint(), self.svarint()
        values, bit = [], self.at * 8

        def bits(width: int) -> int:
            nonlocal bit
            bit += width
            return sum((self.data[i // 8] >> i % 8 & 1) << (i - bit + width) for i in range(bit - width, bit))

        for _ in range(count):
            rice_quotient = 0
            while rice_quotient < 16 and bits(1):
                rice_quotient += 1
            code = bits(bits(6) + 1) if rice_quotient == 16 else rice_quotient << k | bits(k)
            value = expected + (code >> 1 if code % 2 == 0 else -(code >> 1) - 1)
            expected = (value if steps else expected) + slope
            values.append(value % 2**64 * multiplier // divisor)
        self.at = (bit + 7) // 8
        return values


def wrap_to_int64(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def read_samples(decoder: FieldDecoder, source: int, first_channel: int):
    shift, base = decoder.u8(), decoder.svarint()
    clocks = decoder.varint()
    for monotonic, unix_time_offset_ns in zip(decoder.column(clocks), decoder.column(clocks)):
        monotonic_ns = (base << shift) + monotonic
        yield f"clock {source} {wrap_to_int64(monotonic_ns)} {wrap_to_int64(monotonic_ns + unix_time_offset_ns)}"
    previous: list[int] = []
    for _ in range(decoder.varint()):
        channel, count, sample_index = first_channel + decoder.varint(), decoder.varint(), 0
        codes = [0] * count
        for _ in range(decoder.varint()):
            sample_index += decoder.varint()
            codes[sample_index] = decoder.u8()
        origin = previous if decoder.u8() else [base] * count
        sample_begins = [a + b for a, b in zip(decoder.column(count), origin)]
        previous = [a + b for a, b in zip(decoder.column(count), sample_begins)]
        raw_values = iter(decoder.column(codes.count(0)))
        for begin, end, code in zip(sample_begins, previous, codes):
            raw_value = 0 if code else next(raw_values)
            yield f"sample {channel} {wrap_to_int64(begin << shift)} {wrap_to_int64(end << shift)} {code} {raw_value}"


def read_source(decoder: FieldDecoder, source: int, first_channel: int) -> list[str]:
    source_record = decoder.record()
    head = [
        source_record.text(),
        source_record.text(),
        source_record.text(),
        source_record.svarint(),
        source_record.svarint(),
        source_record.text(),
    ]
    command = ",".join(source_record.text() for _ in range(source_record.varint()))
    lines = [f"source {source} {' '.join(map(str, head))} {source_record.text()} {command}"]
    for number, channel_record in enumerate(decoder.records(), first_channel):
        fields = [channel_record.text() for _ in range(5)] + [
            channel_record.u8(),
            channel_record.text(),
            channel_record.u8(),
            channel_record.u8(),
            channel_record.u8(),
            channel_record.f64(),
            channel_record.optional(channel_record.varint),
        ]
        fields += [
            channel_record.f64(),
            channel_record.f64(),
            channel_record.u8(),
            channel_record.text(),
            channel_record.f64(),
            channel_record.f64(),
        ]
        lines.append(f"channel {number} {source} " + " ".join(map(str, fields)))
    return lines


def read_events(decoder: FieldDecoder, source: int):
    for record in decoder.records():
        yield f"mark {source} {record.svarint()} {record.u8()} {record.varint()} {record.varint()} {record.text()}"
    for record in decoder.records():
        yield f"metric {source} {record.svarint()} {record.optional(record.svarint)} {record.text()} {record.f64()}"


def read_facts(decoder: FieldDecoder, source: int):
    for record in decoder.records():
        yield f"fact {source} {record.text()} {record.text()}"
    for record in decoder.records():
        fields = [
            record.text(),
            record.text(),
            record.text(),
            *(record.optional(record.f64) for _ in range(3)),
            record.text(),
        ]
        fields += [record.optional(record.f64) for _ in range(3)] + [record.svarint()]
        if not record.at_end():  # response to a load, where calibrate measured it
            response = [record.optional(record.f64) for _ in range(13)] + [record.text()]
            fields += response if set(response) - {"-", ""} else []
        yield f"calibration {source} " + " ".join(map(str, fields))


def read_shifted_column(decoder: FieldDecoder, count: int, shift: int) -> list[int]:
    return [wrap_to_int64(value << shift) for value in decoder.column(count)]


def read_names(decoder: FieldDecoder, source: int):
    for record in decoder.records():
        yield f"place {source} {record.varint()} {record.varint()} {record.u8()} {record.text()}"
    for record in decoder.records():
        fields = [record.varint(), record.u8(), *(record.varint() for _ in range(6))]
        yield f"class {source} {' '.join(map(str, fields))} {record.text()}"
    for record in decoder.records():
        number, device = record.varint(), record.text()
        yield f"queue {source} {number} {record.varint()} {record.varint()} {record.varint()} {device}"


def read_kernels(decoder: FieldDecoder, source: int, base: int, shift: int):
    count = decoder.varint()
    classes, queues, places = ([decoder.varint() for _ in range(count)] for _ in range(3))
    correlations, correlation_id = [], 0
    for _ in range(count):
        correlation_id += decoder.svarint()
        correlations.append(correlation_id % 2**32)
    sizes = [decoder.varint() for _ in range(count)]
    durations: dict[tuple[int, int], int] = {}
    end = base >> shift
    for i, (gap, change) in enumerate(zip(decoder.column(count), decoder.column(count))):
        key = classes[i], places[i]
        durations[key] = (durations.get(key, 0) + change) % 2**64
        start, end = end + gap, end + gap + durations[key]
        times = f"{wrap_to_int64(start << shift)} {wrap_to_int64(end << shift)}"
        yield f"kernel {source} {times} {classes[i]} {queues[i]} {places[i]} {correlations[i]} {sizes[i]}"


def read_activity(decoder: FieldDecoder, source: int):
    shift, begin, end = decoder.u8(), decoder.svarint(), decoder.svarint()
    yield from read_names(decoder, source)
    count = decoder.varint()
    places, entries, sampled_step_counts = ([decoder.varint() for _ in range(count)] for _ in range(3))
    times = [read_shifted_column(decoder, count, shift) for _ in range(3)]
    for row in zip(places, entries, *times, sampled_step_counts):
        yield f"time {source} {begin} {end} {' '.join(map(str, row))}"
    count = decoder.varint()
    columns = [[decoder.varint() for _ in range(count)] for _ in range(4)]
    for row in zip(*columns, read_shifted_column(decoder, count, shift)):
        yield f"kernels {source} {begin} {end} {' '.join(map(str, row))}"
    count = decoder.varint()
    flags = [decoder.u8() for _ in range(count)]
    shapes, kernels = ([decoder.varint() for _ in range(count)] for _ in range(2))
    numbers = read_shifted_column(decoder, count, 0)
    for row in zip(numbers, *(read_shifted_column(decoder, count, shift) for _ in range(3)), shapes, kernels, flags):
        yield f"step {source} {' '.join(map(str, row))}"
    yield from read_kernels(decoder, source, begin, shift)
    count = decoder.varint()
    columns = [[decoder.varint() for _ in range(count)] for _ in range(3)]
    for row in zip(*columns, read_shifted_column(decoder, count, shift)):
        yield f"share {source} {' '.join(map(str, row))}"


def read_powers(decoder: FieldDecoder, source: int):
    for record in decoder.records():
        fields = [
            record.text(),
            record.u8(),
            record.text(),
            record.varint(),
            *(record.f64() for _ in range(8)),
            record.varint(),
        ]
        yield f"power {source} " + " ".join(map(str, fields))


def read_engine_steps(decoder: FieldDecoder, source: int):
    for request_record in decoder.records():
        yield (
            f"request {source} {request_record.varint()} {request_record.text()} "
            f"{request_record.text()} {request_record.text()}"
        )
    n = decoder.varint()
    begins, durations = decoder.column(n), decoder.column(n)
    counts = [decoder.varint() for _ in range(n)]
    entry_count = decoder.varint()
    request, requests = 0, []
    for _ in range(entry_count):
        request += decoder.svarint()
        requests.append(request)
    prompt, cached, decoded, rejected_tokens = ([decoder.varint() for _ in range(entry_count)] for _ in range(4))
    context_by_request: dict[int, int] = {}
    contexts = []
    for i, request in enumerate(requests):
        context_by_request[request] = (
            context_by_request.get(request, 0) + prompt[i] + cached[i] + decoded[i] + decoder.svarint()
        )
        contexts.append(context_by_request[request])
    events = [decoder.u8() for _ in range(entry_count)]
    entry = 0
    for begin, duration, count in zip(begins, durations, counts):
        begin = wrap_to_int64(begin)
        yield f"engine-step {source} {begin} {begin + wrap_to_int64(duration)} {count}"
        for i in range(entry, entry + count):
            fields = (requests[i], prompt[i], cached[i], decoded[i], rejected_tokens[i], contexts[i], events[i])
            yield f"in-step {source} " + " ".join(map(str, fields))
        entry += count


def read_end(decoder: FieldDecoder, source: int):
    end_record = decoder.record()
    yield (
        f"end {source} {end_record.optional(end_record.svarint)} {end_record.optional(end_record.svarint)} "
        f"{end_record.f64()} {end_record.varint()} {end_record.varint()}"
    )
    for d in decoder.records():
        yield f"diagnostic {d.text()} {d.varint()} {d.text()} {d.text()}"


def iterate_chunks(data: bytes):
    """Type, source number and payload of every complete chunk."""
    chunk_offset = 0
    while (chunk_offset := data.find(MAGIC, chunk_offset)) >= 0:
        header = data[chunk_offset : chunk_offset + 24]
        if len(header) < 24 or zlib.crc32(header[:20]) != struct.unpack_from("<I", header, 20)[0]:
            chunk_offset += 1
            continue
        assert header[4] == 1, f"version {header[4]}.{header[5]}"
        stored_size, decompressed_size = (
            int.from_bytes(header[10:13], "little"),
            int.from_bytes(header[13:16], "little"),
        )
        stored_payload = data[chunk_offset + 24 : chunk_offset + 24 + stored_size]
        if zlib.crc32(stored_payload) != struct.unpack_from("<I", header, 16)[0]:
            chunk_offset += 4
            continue
        compressed = header[7] & 2
        payload = (
            zstandard.ZstdDecompressor().decompress(stored_payload, max_output_size=decompressed_size)
            if compressed
            else stored_payload
        )
        yield header[6], struct.unpack_from("<H", header, 8)[0], payload
        chunk_offset += 24 + stored_size


def dump(data: bytes) -> list[str]:
    lines: list[str] = []
    first_channels: dict[int, int] = {}
    readers = {3: read_events, 4: read_facts, 5: read_end, 7: read_activity, 8: read_powers, 9: read_engine_steps}
    for kind, source, payload in iterate_chunks(data):
        if kind == 1 and source not in first_channels:
            first_channels[source] = sum(line.startswith("channel ") for line in lines)
            lines += read_source(FieldDecoder(payload), source, first_channels[source])
        elif kind == 2:
            lines += read_samples(FieldDecoder(payload), source, first_channels[source])
        elif kind in readers:
            lines += readers[kind](FieldDecoder(payload), source)
    return lines


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        print("\n".join(dump(file.read())))
