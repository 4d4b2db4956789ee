// SPDX-License-Identifier: Apache-2.0
//
// Writes results. The only code that writes to stdout, stderr or a file named by -o, and that detects failures: a full
// disk or a closed pipe must not look like success. Escapes unprintable characters (base/printable_text.h), whatever
// names a text contains.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/output_file.h"
#include "base/result.h"

namespace joulemap::cli {

enum class Stream { out, error };

Status write_to(Stream stream, std::string_view text);
// Replaces the line that the cursor of a terminal is in, on stderr; empty text clears it. Ignores a closed stderr: such a
// line is not missed.
void replace_status_line(std::string_view text);

// The file named by -o, or stdout if the path is empty. Opened before the work starts, so that a wrong path fails at
// once. Never overwrites an input (base/output_file.h) or any recording, because results are not recordings.
class Output {
 public:
  // `inputs`: every file and folder that the command reads. For recordings, their folders of parts are protected too.
  static Result<Output> open(const std::string& path, std::span<const std::string> inputs);
  Status write(std::string_view text);
  // Writes binary data unchanged.
  Status write_bytes(std::string_view bytes);

 private:
  explicit Output(std::optional<OutputFile> file) : file_(std::move(file)) {}
  std::optional<OutputFile> file_;
};

// Opens and writes in one call, for results that are computed quickly.
Status write_to_file_or_stdout(const std::string& path, std::string_view text, std::span<const std::string> inputs);

// Inputs, and for recordings among them their folders of parts.
std::vector<std::string> with_part_folders(std::span<const std::string> inputs);

}  // namespace joulemap::cli
