// SPDX-License-Identifier: Apache-2.0
#include "ingest/trace_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/small_file.h"

namespace joulemap::ingest {
namespace {

constexpr std::string_view kGzip = "\x1f\x8b";
constexpr std::size_t kBlock = std::size_t{1} << 20;

}  // namespace

// The size is a hint: a pipe has none, and a file that is being written grows.
Result<std::string> read_trace_file(const std::string& path) {
  Result<FileDescriptor> fd = open_for_reading(path);
  if (!fd) return std::move(fd).error();
  struct stat status {};
  if (::fstat(fd->get(), &status) != 0) return system_error("stat", path, errno);
  std::string content;
  std::size_t size = 0;
  content.resize(static_cast<std::size_t>(std::max<off_t>(status.st_size, 0)) + 1);
  for (;;) {
    if (size == content.size()) content.resize(content.size() + kBlock + content.size() / 2);
    const ssize_t got = ::read(fd->get(), content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read", path, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  content.resize(size);
  if (content.starts_with(kGzip)) {
    return Error{ErrorCode::unsupported, path + " is compressed", "gunzip it first: gzip -dk " + path};
  }
  return content;
}

}  // namespace joulemap::ingest
