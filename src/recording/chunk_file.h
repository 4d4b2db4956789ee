// SPDX-License-Identifier: Apache-2.0
//
// ChunkFile: appends whole chunks to a file. If a write fails, it truncates the file to the last whole chunk, so a full
// disk leaves no partial chunk. It returns the error, and the next append tries again.
//
// An open ChunkFile holds an exclusive flock, which shows a join that the file is being written. Appended data survives
// the death of the process; it survives a crash of the machine only after sync(). Owned by one writer; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace joulemap::recording {

class ChunkFile {
 public:
  // Fails if the file exists: recordings are never overwritten.
  static Result<ChunkFile> create(const std::string& path);

  Status append(std::string_view chunk);
  Status sync();
  void unlock();  // no more appends follow: a join may take the file

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return whole_chunk_bytes_; }

 private:
  ChunkFile(std::string path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  FileDescriptor fd_;
  std::uint64_t whole_chunk_bytes_ = 0;  // bytes of whole chunks
};

// Whether a process currently has the file open as a ChunkFile.
bool is_being_written(const std::string& path);

}  // namespace joulemap::recording
