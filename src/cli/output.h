// SPDX-License-Identifier: Apache-2.0
//
// Writes results to stdout, stderr or the file of -o, and reports failures: a full disk or a closed pipe must not look
// like success. Escapes unprintable characters (base/printable_text.h), because texts contain names from recordings.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/output_file.h"
#include "base/result.h"

namespace joulemap::cli {

enum class StandardStream { out, error };

Status write_to_stream(StandardStream stream, std::string_view text);
// Replaces the current line of the terminal on stderr; an empty text clears it. Ignores errors: the line is optional.
void replace_status_line(std::string_view text);

// The file of -o, or stdout if the path is empty. Opened before the work starts, so that a wrong path fails at once.
// Never overwrites an input (base/output_file.h) or a recording.
class CommandOutput {
 public:
  // `inputs`: files and folders that the verb reads. Also protects the folders of parts of recordings among them.
  static Result<CommandOutput> open(const std::string& path, std::span<const std::string> inputs);
  // Writes text with unprintable characters escaped.
  Status write(std::string_view text);
  // Writes bytes unchanged.
  Status write_bytes(std::string_view bytes);

 private:
  explicit CommandOutput(std::optional<OutputFile> file) : atomic_file_(std::move(file)) {}
  std::optional<OutputFile> atomic_file_;
};

// CommandOutput::open() and write() in one call, for results that are computed quickly.
Status write_to_file_or_stdout(const std::string& path, std::string_view text, std::span<const std::string> inputs);

// The inputs, and for each the folder that would contain the parts of a recording with its name.
std::vector<std::string> add_part_folders(std::span<const std::string> inputs);

}  // namespace joulemap::cli
