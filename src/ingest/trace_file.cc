// SPDX-License-Identifier: Apache-2.0
#include "ingest/trace_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "base/scoped_signal_block.h"
#include "base/small_file.h"
#include "formats/gzip.h"

namespace joulemap::ingest {
namespace {

constexpr std::size_t kReadBlock_bytes = std::size_t{1} << 20;
constexpr off_t kMinParallelRead_bytes = 4 << 20;
constexpr std::size_t kMaxReadThreads = 4;

std::optional<Diagnostic> describe_gzip_damage(const formats::MaybeGzipFile& file, const std::string& path) {
  if (file.stream_state() == formats::StreamState::truncated) {
    return Diagnostic{
        "file_cut", 1, fmt::format("{}: the compressed file is truncated: the part before its end was read", path), {}};
  }
  if (file.stream_state() == formats::StreamState::damaged) {
    return Diagnostic{"file_damaged",
                      1,
                      fmt::format("{}: the compressed file is damaged: the readable part was decompressed", path),
                      {}};
  }
  return std::nullopt;
}

// Returns the number of bytes read; fewer than requested only at the end of the file.
Result<std::size_t> read_file_part(int file, std::span<char> out, std::size_t offset, const std::string& path) {
  std::size_t read_byte_count = 0;
  while (read_byte_count < out.size()) {
    const ssize_t count = ::pread(file, out.data() + read_byte_count, out.size() - read_byte_count,
                                  static_cast<off_t>(offset + read_byte_count));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("read", path, errno);
    if (count == 0) break;
    read_byte_count += static_cast<std::size_t>(count);
  }
  return read_byte_count;
}

// Reads an uncompressed file with up to kMaxReadThreads threads, one part each, because page faults of fresh memory
// take most of the time. Returns nullopt if the file has more than `size` bytes: it has grown.
Result<std::optional<TraceBytes>> read_in_parallel(const std::string& path, std::size_t size) {
  Result<FileDescriptor> file = open_for_reading(path);
  if (!file) return std::move(file).error();
  const std::size_t threads = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMaxReadThreads);
  std::unique_ptr<char[]> bytes(new char[size + 1]);
  const auto part_begin_offset = [&](std::size_t part) { return part == threads ? size + 1 : size / threads * part; };
  std::vector<Result<std::size_t>> read_byte_counts(threads, std::size_t{0});
  const auto read_part = [&](std::size_t part) {
    const std::span<char> buffer(bytes.get() + part_begin_offset(part),
                                 part_begin_offset(part + 1) - part_begin_offset(part));
    read_byte_counts[part] = read_file_part(file->get(), buffer, part_begin_offset(part), path);
  };
  std::vector<std::thread> workers;
  {
    const ScopedSignalBlock signal_block;
    for (std::size_t part = 1; part < threads; ++part) workers.emplace_back(read_part, part);
  }
  read_part(0);
  for (std::thread& worker : workers) worker.join();
  std::size_t contiguous_byte_count = 0;  // bytes up to the first part that is incomplete
  for (std::size_t part = 0; part < threads && contiguous_byte_count == part_begin_offset(part); ++part) {
    if (!read_byte_counts[part]) return read_byte_counts[part].error();
    contiguous_byte_count += *read_byte_counts[part];
  }
  if (contiguous_byte_count > size) return std::optional<TraceBytes>();
  return std::optional(TraceBytes(std::move(bytes), contiguous_byte_count, std::nullopt));
}

}  // namespace

// The size from stat() is only a hint: a pipe has none, and a file may grow while it is read.
Result<TraceBytes> read_trace_file(const std::string& path) {
  Result<formats::MaybeGzipFile> file = formats::MaybeGzipFile::open(path);
  if (!file) return std::move(file).error();
  struct stat status {};
  const bool has_file_status = ::stat(path.c_str(), &status) == 0;
  if (has_file_status && S_ISREG(status.st_mode) && status.st_size >= kMinParallelRead_bytes &&
      !file->is_compressed()) {
    Result<std::optional<TraceBytes>> parts = read_in_parallel(path, static_cast<std::size_t>(status.st_size));
    if (!parts) return std::move(parts).error();
    if (*parts) return **std::move(parts);
  }
  std::size_t capacity = static_cast<std::size_t>(has_file_status ? std::max<off_t>(status.st_size, 0) : 0) + 1;
  std::size_t size = 0;
  std::unique_ptr<char[]> bytes(new char[capacity]);
  for (;;) {
    if (size == capacity) {
      capacity += capacity / 2 + kReadBlock_bytes;
      std::unique_ptr<char[]> larger_buffer(new char[capacity]);
      std::memcpy(larger_buffer.get(), bytes.get(), size);
      bytes = std::move(larger_buffer);
    }
    const Result<std::size_t> read_byte_count = file->read(std::span(bytes.get() + size, capacity - size));
    if (!read_byte_count) return read_byte_count.error();
    if (*read_byte_count == 0) break;
    size += *read_byte_count;
  }
  return TraceBytes(std::move(bytes), size, describe_gzip_damage(*file, path));
}

}  // namespace joulemap::ingest
