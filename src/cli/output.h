// SPDX-License-Identifier: Apache-2.0
//
// Where results go. The only place that writes to stdout, stderr or a file named by -o, and the one that
// notices when that fails: a full disk or a closed pipe must not look like success. Texts are made printable here
// (base/printable_text.h), whatever names they hold.
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

// The file named by -o, or stdout where the path is empty. Opened before the work starts, so that a wrong path is found at
// once. An input is never overwritten (base/output_file.h), and neither is any recording: results are none.
class Output {
 public:
  // `inputs`: every file and folder that the command reads. Recordings bring their folders of parts along.
  static Result<Output> open(const std::string& path, std::span<const std::string> inputs);
  Status write(std::string_view text);
  // As it is: for what need not be text.
  Status write_bytes(std::string_view bytes);

 private:
  explicit Output(std::optional<OutputFile> file) : file_(std::move(file)) {}
  std::optional<OutputFile> file_;
};

// Both at once, for what is made quickly.
Status write_to_file_or_stdout(const std::string& path, std::string_view text, std::span<const std::string> inputs);

// Inputs and the folders of parts that belong to those that are recordings.
std::vector<std::string> with_parts(std::span<const std::string> inputs);

}  // namespace joulemap::cli
