// SPDX-License-Identifier: Apache-2.0
#include "recording/chunk_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/private_files.h"
#include "base/small_file.h"
#include "base/write_fully.h"

namespace joulemap::recording {

Result<ChunkFile> ChunkFile::create(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, kPrivateFileMode));
  if (!fd.is_open()) {
    const int failure = errno;
    Error error = system_error("create", path, failure);
    if (failure == EEXIST) error.remedy = fmt::format("remove it (rm {}) or choose another name", path);
    return error;
  }
  // Where flock is not supported, a join only misses that the file is still being written.
  static_cast<void>(::flock(fd.get(), LOCK_EX | LOCK_NB));
  return ChunkFile(path, std::move(fd));
}

Status ChunkFile::append(std::string_view chunk) {
  Status write_status = write_fully(fd_.get(), chunk, path_);
  if (write_status) {
    whole_chunk_bytes_ += chunk.size();
    return write_status;
  }
  if (::ftruncate(fd_.get(), static_cast<off_t>(whole_chunk_bytes_)) != 0) {
    // The partial chunk stays and readers skip it; the next chunk follows it.
    struct stat status {};
    if (::fstat(fd_.get(), &status) == 0) whole_chunk_bytes_ = static_cast<std::uint64_t>(status.st_size);
  }
  return write_status;
}

Status ChunkFile::sync() {
  // Not every file system supports fsync (EINVAL); only errors of the disk matter.
  if (::fsync(fd_.get()) != 0 && errno != EINVAL && errno != EROFS) return system_error("sync", path_, errno);
  return Done{};
}

void ChunkFile::unlock() { static_cast<void>(::flock(fd_.get(), LOCK_UN)); }

bool is_being_written(const std::string& path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return fd.is_open() && ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace joulemap::recording
