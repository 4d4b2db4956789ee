// SPDX-License-Identifier: Apache-2.0
//
// Reads a file sequentially, compressed with gzip or not; the first bytes show which. Wraps ISA-L's igzip, which no
// other folder includes. igzip inflates three times as fast as zlib, with which inflating would take as long as parsing
// a trace on two cores. A file with several gzip members is one text, as with `gzip -d`. Owned and read by one thread
// at a time; holds one block of the file in memory.
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
  truncated,  // the compressed file ends within a gzip member
  damaged,    // invalid compressed data, or a wrong checksum
};

class MaybeGzipFile {
 public:
  static Result<MaybeGzipFile> open(const std::string& path);
  MaybeGzipFile(MaybeGzipFile&&) noexcept;
  MaybeGzipFile& operator=(MaybeGzipFile&&) noexcept;
  ~MaybeGzipFile();

  // Returns the number of bytes written to `out`: all of it, fewer at the end of the text or at damage, then 0. Fails
  // if the file cannot be read; damage only sets stream_state().
  Result<std::size_t> read(std::span<char> out);

  StreamState stream_state() const { return stream_state_; }
  // Share of the file's bytes, as stored, that has been read: 0 to 1; 0 if the size is unknown.
  double read_fraction() const { return size_ > 0 ? static_cast<double>(bytes_read_) / static_cast<double>(size_) : 0; }
  bool is_compressed() const { return inflater_ != nullptr; }

 private:
  struct Inflater;
  MaybeGzipFile(std::string path, FileDescriptor file);

  Status refill_input();
  bool begin_gzip_member();
  Result<std::size_t> read_uncompressed(std::span<char> out);
  Result<std::size_t> read_compressed(std::span<char> out);

  std::string path_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;  // bytes of the file when it was opened; 0: unknown
  std::uint64_t bytes_read_ = 0;
  std::vector<unsigned char> unread_input_;  // bytes read from the file and not yet consumed
  std::size_t unread_offset_ = 0;
  bool is_at_file_end_ = false;
  StreamState stream_state_ = StreamState::reading;
  std::unique_ptr<Inflater> inflater_;  // null for an uncompressed file
};

}  // namespace joulemap::formats
