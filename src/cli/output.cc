// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/printable_text.h"
#include "base/small_file.h"
#include "base/write_fully.h"
#include "recording/recording_parts.h"

namespace joulemap::cli {
namespace {

Status check_not_a_recording(const std::string& path) {
  struct stat status {};
  const bool is_file = ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  if (!is_file || !recording::starts_with_recording_magic(path)) return Done{};
  return Error{ErrorCode::usage, fmt::format("{} is a recording and would be overwritten", path),
               fmt::format("choose another file, or remove it first: rm {}", path)};
}

}  // namespace

Status write_to_stream(StandardStream stream, std::string_view text) {
  const std::string printable_text = printable_lines(text);
  return stream == StandardStream::out ? write_fully(STDOUT_FILENO, printable_text, "stdout")
                                       : write_fully(STDERR_FILENO, printable_text, "stderr");
}

std::vector<std::string> add_part_folders(std::span<const std::string> inputs) {
  std::vector<std::string> input_files_and_folders(inputs.begin(), inputs.end());
  for (const std::string& input : inputs) {
    if (!input.empty()) input_files_and_folders.push_back(recording::recording_folder(input));
  }
  return input_files_and_folders;
}

Result<CommandOutput> CommandOutput::open(const std::string& path, std::span<const std::string> inputs) {
  if (path.empty()) return CommandOutput(std::nullopt);
  Result<OutputFile> file = OutputFile::open(path, add_part_folders(inputs));
  if (!file) return std::move(file).error();
  if (Status recording_check = check_not_a_recording(path); !recording_check) return std::move(recording_check).error();
  return CommandOutput(std::move(*file));
}

void replace_status_line(std::string_view text) {
  static_cast<void>(write_fully(STDERR_FILENO, "\r\x1b[K" + printable_lines(text), "stderr"));
}

Status CommandOutput::write(std::string_view text) { return write_bytes(printable_lines(text)); }

Status CommandOutput::write_bytes(std::string_view bytes) {
  return atomic_file_ ? atomic_file_->replace_content(bytes) : write_fully(STDOUT_FILENO, bytes, "stdout");
}

Status write_to_file_or_stdout(const std::string& path, std::string_view text, std::span<const std::string> inputs) {
  Result<CommandOutput> output = CommandOutput::open(path, inputs);
  if (!output) return std::move(output).error();
  return output->write(text);
}

}  // namespace joulemap::cli
