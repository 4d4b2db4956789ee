# SPDX-License-Identifier: Apache-2.0
"""A minimal HTTP/1.1 client over asyncio: one request per connection, and a body in pieces as they arrive.

http.client blocks, so each request in flight would need a thread; and a server that sends a byte now and then would defeat
its time limit, which applies to each read. Here the caller cancels the whole exchange.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from dataclasses import dataclass
from typing import AsyncIterator, Optional
from urllib.parse import urlsplit

from .outcome import BenchError, RequestFailure

MAX_RESPONSE_HEAD_BYTES = 64 << 10
MAX_BODY_BYTES = 256 << 20
READ_CHUNK_BYTES = 64 << 10


@dataclass(frozen=True)
class EndpointAddress:
    """Where an endpoint is."""

    host: str
    port: int
    is_tls: bool
    path: str  # of the API, such as "/v1"

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(url: str) -> EndpointAddress:
    """Raises ValueError if `url` is no http or https address."""
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(f"{url!r} contains characters that an address cannot have")
    url_parts = urlsplit(url)
    if url_parts.scheme not in ("http", "https") or not url_parts.hostname or url_parts.query or url_parts.fragment:
        raise ValueError(f"{url!r} is no address such as http://127.0.0.1:8000/v1")
    if url_parts.username is not None:
        raise ValueError("an address with a user name is not supported: use --api-key-env")
    is_tls = url_parts.scheme == "https"
    return EndpointAddress(
        url_parts.hostname, url_parts.port or (443 if is_tls else 80), is_tls, url_parts.path.rstrip("/")
    )


@dataclass
class ResolvedHost:
    """An address that was looked up."""

    address: EndpointAddress
    ip_addresses: list[str]  # the one to which connections succeed first
    tls_context: Optional[ssl.SSLContext]

    @property
    def is_loopback(self) -> bool:
        return all(ipaddress.ip_address(ip.partition("%")[0]).is_loopback for ip in self.ip_addresses)


@dataclass
class HttpResponse:
    status: int
    reason: str
    headers: dict[str, str]  # names in lower case
    _reader: asyncio.StreamReader

    async def read_body(self) -> AsyncIterator[bytes]:
        """The body, without the framing of the transfer. Raises RequestFailure if it ends too early."""
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            body_pieces = self._read_chunked_body()
        else:
            body_pieces = self._read_counted_body(self._content_length())
        received_byte_count = 0
        async for body_piece in body_pieces:
            received_byte_count += len(body_piece)
            if received_byte_count > MAX_BODY_BYTES:
                raise RequestFailure("malformed", f"an answer of more than {MAX_BODY_BYTES} bytes")
            yield body_piece

    def _content_length(self) -> Optional[int]:
        header_text = self.headers.get("content-length")
        if header_text is None:
            return None
        if not (header_text.isascii() and header_text.isdigit()) or len(header_text) > 15:
            raise RequestFailure("malformed", "the length of the content is no number")
        return int(header_text)

    async def _read_counted_body(self, remaining_bytes: Optional[int]) -> AsyncIterator[bytes]:
        """Reads `remaining_bytes`; None: until the server closes the connection."""
        while remaining_bytes is None or remaining_bytes > 0:
            body_piece = await self._reader.read(
                READ_CHUNK_BYTES if remaining_bytes is None else min(remaining_bytes, READ_CHUNK_BYTES)
            )
            if not body_piece and remaining_bytes is None:
                return
            if not body_piece:
                raise RequestFailure("closed", f"{remaining_bytes} bytes of the content are missing")
            remaining_bytes = None if remaining_bytes is None else remaining_bytes - len(body_piece)
            yield body_piece

    async def _read_chunked_body(self) -> AsyncIterator[bytes]:
        while True:
            size_digits = (await self._read_line()).split(b";")[0].strip()
            try:
                chunk_size = int(size_digits.decode("ascii"), 16) if len(size_digits) < 16 else -1
            except ValueError:
                chunk_size = -1
            if chunk_size < 0:
                raise RequestFailure("malformed", "the size of a chunk is no hexadecimal number")
            if chunk_size == 0:
                return  # trailers do not matter
            async for body_piece in self._read_counted_body(chunk_size):
                yield body_piece
            if await self._read_line():
                raise RequestFailure("malformed", "a chunk is longer than its size")

    async def _read_line(self) -> bytes:
        line = await self._reader.readline()
        if not line.endswith(b"\n"):
            raise RequestFailure("closed", "in the middle of the answer")
        return line.strip(b"\r\n")


@contextlib.asynccontextmanager
async def send_http_request(
    host: ResolvedHost, method: str, path: str, headers: dict[str, str], body: bytes = b""
) -> AsyncIterator[HttpResponse]:
    """Sends a request and yields the response. Closes the connection when the block ends, however it ends."""
    writer = None
    try:
        reader, writer = await _connect(host)
        head_lines = [
            f"{method} {host.address.path}{path} HTTP/1.1",
            f"Host: {host.address.host_header}",
            "Connection: close",
        ]
        head_lines += [f"{name}: {value}" for name, value in headers.items()]
        head_lines += [f"Content-Length: {len(body)}", "", ""]
        writer.write("\r\n".join(head_lines).encode("ascii") + body)
        await writer.drain()
        yield await _read_response_head(reader)
    except (OSError, asyncio.IncompleteReadError) as error:
        raise RequestFailure("closed", type(error).__name__) from error
    except (asyncio.LimitOverrunError, ValueError) as error:
        raise RequestFailure("malformed", str(error)) from error
    finally:
        if writer is not None:
            writer.transport.abort()  # does not wait for a server that hangs


async def _connect(host: ResolvedHost) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Tries all addresses: localhost may be ::1, too, where no server accepts connections. Later connections begin with
    the one that succeeded."""
    tls_server_name = host.address.host if host.tls_context else None
    last_failure = RequestFailure("refused", "no address")
    for ip in list(host.ip_addresses):
        try:
            connection = await asyncio.open_connection(
                ip,
                host.address.port,
                ssl=host.tls_context,
                server_hostname=tls_server_name,
                limit=MAX_RESPONSE_HEAD_BYTES,
            )
        except OSError as error:
            last_failure = RequestFailure("refused", error.strerror or str(error))
        else:
            host.ip_addresses.sort(key=lambda other_ip: other_ip != ip)
            return connection
    raise last_failure


async def _read_response_head(reader: asyncio.StreamReader) -> HttpResponse:
    head_bytes = await reader.readuntil(b"\r\n\r\n")
    status_line, *header_lines = head_bytes.decode("latin-1").split("\r\n")
    version, _, status_and_reason = status_line.partition(" ")
    status_code, _, reason = status_and_reason.partition(" ")
    if not version.startswith("HTTP/1.") or not (
        status_code.isascii() and status_code.isdigit() and len(status_code) == 3
    ):
        raise RequestFailure("malformed", "the answer is not HTTP/1.1")
    header_pairs = (header_line.partition(":") for header_line in header_lines if header_line)
    return HttpResponse(
        int(status_code), reason, {name.strip().lower(): value.strip() for name, _, value in header_pairs}, reader
    )


async def resolve_host(address: EndpointAddress) -> ResolvedHost:
    """Finds the host once: requests do not wait for a name server."""
    try:
        address_infos = await asyncio.get_running_loop().getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM
        )
    except OSError as error:
        raise BenchError(f"{address.host} is no known host: {error.strerror}", "correct --endpoint") from error
    tls_context = ssl.create_default_context() if address.is_tls else None
    return ResolvedHost(address, [str(address_info[4][0]) for address_info in address_infos], tls_context)
