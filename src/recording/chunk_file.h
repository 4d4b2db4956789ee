// SPDX-License-Identifier: Apache-2.0
//
// ChunkFile: appends whole chunks to a file. When a write fails the file is cut back to the last whole chunk, so that a
// full disk leaves no torn ones; the error comes back and the next append tries again.
//
// While it is open the file carries an exclusive flock: that is how a join sees that somebody is still writing. What
// was appended survives the death of the process; that of the machine only after sync(). Owner: one writer; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace joulemap::recording {

class ChunkFile {
 public:
  // The file must not exist: a recording is never overwritten.
  static Result<ChunkFile> create(const std::string& path);

  Status append(std::string_view chunk);
  Status sync();
  void unlock();  // nothing will be appended any more: a join may take it

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }

 private:
  ChunkFile(std::string path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  FileDescriptor fd_;
  std::uint64_t size_ = 0;  // of the whole chunks
};

// Whether a process holds the file open as a ChunkFile now.
bool is_being_written(const std::string& path);

}  // namespace joulemap::recording
