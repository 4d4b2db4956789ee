// SPDX-License-Identifier: Apache-2.0
//
// Reads a file front to back whether it was compressed with gzip or not, told by its first bytes: the face of ISA-L's
// igzip, which no other folder includes. It inflates three times as fast as zlib: a trace is parsed on two cores about as
// fast as zlib's one thread could inflate it. A file of several gzip members is one text, as with `gzip -d`. Owned and read
// by one thread at a time; memory for a piece of the file.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace joulemap::formats {

enum class StreamEnd : std::uint8_t {
  not_yet,
  whole,
  cut,      // the compressed stream ends too soon
  damaged,  // it makes no sense from here on, or its checksum is wrong
};

class MaybeGzipFile {
 public:
  static Result<MaybeGzipFile> open(const std::string& path);
  MaybeGzipFile(MaybeGzipFile&&) noexcept;
  MaybeGzipFile& operator=(MaybeGzipFile&&) noexcept;
  ~MaybeGzipFile();

  // Fills all of `out` but at the end of the text; 0 ever after. What was good before a damage is given.
  Result<std::size_t> read(std::span<char> out);

  StreamEnd end() const { return end_; }
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
  std::vector<unsigned char> pending_;  // bytes of the file that were read and not yet used
  std::size_t pending_at_ = 0;
  bool file_over_ = false;
  StreamEnd end_ = StreamEnd::not_yet;
  std::unique_ptr<Inflater> inflater_;  // of a compressed file
};

}  // namespace joulemap::formats
