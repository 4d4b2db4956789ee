// SPDX-License-Identifier: Apache-2.0
//
// ByteSource: random access to the bytes of a recording: a file, or memory in tests and fuzzers. One thread.
#pragma once

#include <cstdint>
#include <memory>
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

// An open regular file. It stays readable after its path is renamed or removed. Immutable: passes over it share it.
struct OpenFile {
  std::string path;
  FileDescriptor fd;
  std::uint64_t size = 0;  // at the time of opening: what is written later is not read

  // Accepts regular files only: devices and pipes have no size.
  static Result<std::shared_ptr<const OpenFile>> open(const std::string& path);
};

// Buffers 256 KiB, or a requested block that is larger.
class FileSource final : public ByteSource {
 public:
  static Result<FileSource> open(const std::string& path);
  explicit FileSource(std::shared_ptr<const OpenFile> file) : file_(std::move(file)) {}
  Result<std::string_view> read_at(std::uint64_t offset, std::size_t size) override;
  std::uint64_t size() const override { return file_->size; }

 private:
  Status fill_buffer(std::uint64_t offset, std::size_t size);

  std::shared_ptr<const OpenFile> file_;  // never null
  std::string buffer_;
  std::uint64_t buffer_offset_ = 0;
};

}  // namespace joulemap::recording
