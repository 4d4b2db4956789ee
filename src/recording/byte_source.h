// SPDX-License-Identifier: Apache-2.0
//
// ByteSource: random access to the bytes of a recording: a file, or memory in tests and fuzzers. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace joulemap::recording {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Returns up to `size` bytes from `offset`; fewer only at the end. Valid until the next call.
  virtual Result<std::string_view> read_at(std::uint64_t offset, std::size_t size) = 0;
  virtual std::uint64_t size() const = 0;  // at the time of opening
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}  // borrowed
  Result<std::string_view> read_at(std::uint64_t offset, std::size_t size) override {
    return offset < bytes_.size() ? bytes_.substr(offset, size) : std::string_view();
  }
  std::uint64_t size() const override { return bytes_.size(); }

 private:
  std::string_view bytes_;
};

// Buffers 256 KiB, or a requested block that is larger. A growing file is read up to its size at opening.
class FileSource final : public ByteSource {
 public:
  // Accepts regular files only: devices and pipes have no size.
  static Result<FileSource> open(const std::string& path);
  Result<std::string_view> read_at(std::uint64_t offset, std::size_t size) override;
  std::uint64_t size() const override { return size_; }

 private:
  FileSource(std::string path, FileDescriptor fd, std::uint64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}
  Status fill(std::uint64_t offset, std::size_t size);

  std::string path_;
  FileDescriptor fd_;
  std::uint64_t size_;
  std::string buffer_;
  std::uint64_t buffer_offset_ = 0;
};

}  // namespace joulemap::recording
