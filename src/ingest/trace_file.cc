// SPDX-License-Identifier: Apache-2.0
#include "ingest/trace_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "formats/gzip.h"

namespace joulemap::ingest {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;

std::optional<Diagnostic> damage_of(const formats::MaybeGzipFile& file, const std::string& path) {
  if (file.end() == formats::StreamEnd::cut) {
    return Diagnostic{
        "file_cut", 1, fmt::format("{}: the compressed file ends too soon: what it holds was read", path), {}};
  }
  if (file.end() == formats::StreamEnd::damaged) {
    return Diagnostic{"file_damaged",
                      1,
                      fmt::format("{}: the compressed file is damaged: what could be unpacked was read", path),
                      {}};
  }
  return std::nullopt;
}

}  // namespace

// The size is a hint: a pipe has none, and a file that is being written grows.
Result<TraceBytes> read_trace_file(const std::string& path) {
  Result<formats::MaybeGzipFile> file = formats::MaybeGzipFile::open(path);
  if (!file) return std::move(file).error();
  struct stat status {};
  const bool has_size = ::stat(path.c_str(), &status) == 0;
  std::size_t capacity = static_cast<std::size_t>(has_size ? std::max<off_t>(status.st_size, 0) : 0) + 1;
  std::size_t size = 0;
  std::unique_ptr<char[]> bytes(new char[capacity]);
  for (;;) {
    if (size == capacity) {
      capacity += capacity / 2 + kBlock;
      std::unique_ptr<char[]> larger(new char[capacity]);
      std::memcpy(larger.get(), bytes.get(), size);
      bytes = std::move(larger);
    }
    const Result<std::size_t> got = file->read(std::span(bytes.get() + size, capacity - size));
    if (!got) return got.error();
    if (*got == 0) break;
    size += *got;
  }
  return TraceBytes(std::move(bytes), size, damage_of(*file, path));
}

}  // namespace joulemap::ingest
