// SPDX-License-Identifier: Apache-2.0
//
// Where results go. The only place that writes to stdout, stderr or a file named by -o, and the one that
// notices when that fails: a full disk or a closed pipe must not look like success. Texts are made printable here
// (base/printable_text.h), whatever names they hold.
#pragma once

#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace joulemap::cli {

enum class Stream { out, error };

Status write_to(Stream stream, std::string_view text);

// A file named by -o, opened before the work starts so that a wrong path is told at once. Its old content stays
// until the new one is written; permissions and links are kept.
class OutputFile {
 public:
  static Result<OutputFile> open(const std::string& path);
  Status replace_content(std::string_view text);

 private:
  OutputFile(std::string path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  std::string path_;
  FileDescriptor fd_;
};

// Into the file named by -o, or to stdout when none is named.
Status write_to_file_or_stdout(const std::string& path, std::string_view text);
// The same for what need not be text, as it is.
Status write_bytes_to_file_or_stdout(const std::string& path, std::string_view bytes);

}  // namespace joulemap::cli
