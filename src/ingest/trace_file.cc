// SPDX-License-Identifier: Apache-2.0
#include "ingest/trace_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/small_file.h"

namespace joulemap::ingest {
namespace {

constexpr std::string_view kGzip = "\x1f\x8b";
constexpr std::size_t kBlock = std::size_t{1} << 20;

}  // namespace

// The size is a hint: a pipe has none, and a file that is being written grows.
Result<TraceBytes> read_trace_file(const std::string& path) {
  Result<FileDescriptor> fd = open_for_reading(path);
  if (!fd) return std::move(fd).error();
  struct stat status {};
  if (::fstat(fd->get(), &status) != 0) return system_error("stat", path, errno);
  std::size_t capacity = static_cast<std::size_t>(std::max<off_t>(status.st_size, 0)) + 1;
  std::size_t size = 0;
  std::unique_ptr<char[]> bytes(new char[capacity]);
  for (;;) {
    if (size == capacity) {
      capacity += capacity / 2 + kBlock;
      std::unique_ptr<char[]> larger(new char[capacity]);
      std::memcpy(larger.get(), bytes.get(), size);
      bytes = std::move(larger);
    }
    const ssize_t got = ::read(fd->get(), bytes.get() + size, capacity - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read", path, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (std::string_view(bytes.get(), size).starts_with(kGzip)) {
    return Error{ErrorCode::unsupported, path + " is compressed", "unpack it first: gzip -dk " + path};
  }
  return TraceBytes(std::move(bytes), size);
}

}  // namespace joulemap::ingest
