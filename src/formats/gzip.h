// SPDX-License-Identifier: Apache-2.0
//
// Reads a file sequentially, compressed with gzip or not; the first bytes show which. Wraps ISA-L's igzip, which no
// other folder includes. igzip inflates three times as fast as zlib: two cores parse a trace about as fast as one zlib
// thread could inflate it. A file with several gzip members is one text, as with `gzip -d`. Owned and read by one
// thread at a time; holds one block of the file in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace joulemap::formats {

enum class StreamState : std::uint8_t {
  reading,
  complete,
  truncated,  // the compressed stream is truncated
  damaged,    // invalid from here on, or wrong checksum
};

class MaybeGzipFile {
 public:
  static Result<MaybeGzipFile> open(const std::string& path);
  MaybeGzipFile(MaybeGzipFile&&) noexcept;
  MaybeGzipFile& operator=(MaybeGzipFile&&) noexcept;
  ~MaybeGzipFile();

  // Fills `out` completely except at the end of the text; returns 0 from then on. Returns the valid data before damage.
  Result<std::size_t> read(std::span<char> out);

  StreamState end() const { return end_; }
  // The share of the file, compressed or not, that has been read.
  double read_share() const { return size_ > 0 ? static_cast<double>(read_bytes_) / static_cast<double>(size_) : 0; }
  bool is_compressed() const { return inflater_ != nullptr; }

 private:
  struct Inflater;
  MaybeGzipFile(std::string path, FileDescriptor file);

  Status refill();
  bool begin_member();
  Result<std::size_t> read_plain(std::span<char> out);
  Result<std::size_t> read_compressed(std::span<char> out);

  std::string path_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;  // when it was opened; 0: unknown
  std::uint64_t read_bytes_ = 0;
  std::vector<unsigned char> pending_;  // bytes read from the file and not yet consumed
  std::size_t pending_offset_ = 0;
  bool is_file_end_ = false;
  StreamState end_ = StreamState::reading;
  std::unique_ptr<Inflater> inflater_;  // null for an uncompressed file
};

}  // namespace joulemap::formats
