// SPDX-License-Identifier: Apache-2.0
//
// ModelFile: the bytes of a file that describes a network, or of stdin. A regular file is memory-mapped, so that only
// the accessed pages of an ONNX file with gigabytes of weights are read. Owns the mapping; bytes() must not outlive it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace joulemap::cli {

class ModelFile {
 public:
  // "-" is stdin. Stdin and pipes are read to their end. Fails above 2 GiB.
  static Result<ModelFile> open(const std::string& path);
  ModelFile(ModelFile&& other_file) noexcept;
  ModelFile& operator=(ModelFile&&) = delete;
  ~ModelFile();

  std::string_view bytes() const;

 private:
  explicit ModelFile(std::string text) : text_(std::move(text)) {}
  ModelFile(void* mapped_bytes, std::size_t size) : mapped_(mapped_bytes), size_(size) {}

  std::string text_;
  void* mapped_ = nullptr;  // null: the bytes are in text_
  std::size_t size_ = 0;
};

// Reads a whole file, such as a table or a profile, and decompresses gzip. Fails above 512 MiB of text.
Result<std::string> read_plain_or_gzip_file(const std::string& path);

}  // namespace joulemap::cli
