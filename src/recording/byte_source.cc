// SPDX-License-Identifier: Apache-2.0
#include "recording/byte_source.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/small_file.h"

namespace joulemap::recording {
namespace {
constexpr std::size_t kReadAheadBytes = std::size_t{256} << 10;
}

Result<std::shared_ptr<const OpenFile>> OpenFile::open(const std::string& path) {
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
  return std::make_shared<const OpenFile>(OpenFile{path, std::move(*fd), static_cast<std::uint64_t>(status.st_size)});
}

Result<FileSource> FileSource::open(const std::string& path) {
  Result<std::shared_ptr<const OpenFile>> file = OpenFile::open(path);
  if (!file) return std::move(file).error();
  return FileSource(std::move(*file));
}

Result<std::string_view> FileSource::read_at(std::uint64_t offset, std::size_t size) {
  if (offset >= file_->size) return std::string_view();
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, file_->size - offset));
  if (offset < buffer_offset_ || offset + size > buffer_offset_ + buffer_.size()) {
    const Status fill_status = fill_buffer(offset, size);
    if (!fill_status) return fill_status.error();
  }
  return std::string_view(buffer_).substr(offset - buffer_offset_, size);
}

Status FileSource::fill_buffer(std::uint64_t offset, std::size_t size) {
  const std::uint64_t bytes_left = file_->size - offset;
  const auto target_size =
      static_cast<std::size_t>(std::min<std::uint64_t>(std::max(size, kReadAheadBytes), bytes_left));
  buffer_.resize(target_size);
  buffer_offset_ = offset;
  std::size_t filled_size = 0;
  while (filled_size < target_size) {
    const ssize_t read_size = ::pread(file_->fd.get(), buffer_.data() + filled_size, target_size - filled_size,
                                      static_cast<off_t>(offset + filled_size));
    if (read_size < 0 && errno == EINTR) continue;
    if (read_size < 0) {
      const int failure = errno;
      buffer_.clear();
      return system_error("read", file_->path, failure);
    }
    if (read_size == 0) break;  // truncated while being read: the rest counts as missing
    filled_size += static_cast<std::size_t>(read_size);
  }
  buffer_.resize(filled_size);
  return Done{};
}

}  // namespace joulemap::recording
