// SPDX-License-Identifier: Apache-2.0
#include "recording/byte_source.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/small_file.h"

namespace joulemap::recording {
namespace {
constexpr std::size_t kReadAhead = std::size_t{256} << 10;
}

Result<FileSource> FileSource::open(const std::string& path) {
  Result<FileDescriptor> fd = open_for_reading(path);
  if (!fd) {
    Error error = std::move(fd).error();
    if (error.code == ErrorCode::not_found)
      error.remedy = fmt::format("make it with: joulemap record -o {} -- COMMAND", path);
    return error;
  }
  struct stat status {};
  if (::fstat(fd->get(), &status) != 0) return system_error("stat", path, errno);
  if (S_ISDIR(status.st_mode)) {
    return Error{ErrorCode::usage, fmt::format("{} is a folder, not a recording", path), "pass a .joule file"};
  }
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorCode::usage, fmt::format("{} is not a regular file", path), "copy it to a file first"};
  }
  return FileSource(path, std::move(*fd), static_cast<std::uint64_t>(status.st_size));
}

Result<std::string_view> FileSource::read_at(std::uint64_t offset, std::size_t size) {
  if (offset >= size_) return std::string_view();
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, size_ - offset));
  if (offset < buffer_offset_ || offset + size > buffer_offset_ + buffer_.size()) {
    const Status filled = fill(offset, size);
    if (!filled) return filled.error();
  }
  return std::string_view(buffer_).substr(offset - buffer_offset_, size);
}

Status FileSource::fill(std::uint64_t offset, std::size_t size) {
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(std::max(size, kReadAhead), size_ - offset));
  buffer_.resize(wanted);
  buffer_offset_ = offset;
  std::size_t filled = 0;
  while (filled < wanted) {
    const ssize_t got =
        ::pread(fd_.get(), buffer_.data() + filled, wanted - filled, static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int failure = errno;
      buffer_.clear();
      return system_error("read", path_, failure);
    }
    if (got == 0) break;  // truncated while being read: the rest counts as missing
    filled += static_cast<std::size_t>(got);
  }
  buffer_.resize(filled);
  return Done{};
}

}  // namespace joulemap::recording
