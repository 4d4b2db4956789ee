// SPDX-License-Identifier: Apache-2.0
#include "cli/share_command.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "cli/output.h"
#include "recording/anonymized_copy.h"
#include "recording/recording_parts.h"
#include "report/text/share_report.h"

namespace joulemap::cli {
namespace {

struct ShareFlags {
  std::string recording_file;
  std::string output_file;
  bool as_json = false;
};

std::string current_user_name() {
  const passwd* const user = ::getpwuid(::getuid());  // NOLINT(concurrency-mt-unsafe): there is one thread
  return user != nullptr && user->pw_name != nullptr ? user->pw_name : "";
}

int share_recording(const ShareFlags& flags) {
  const std::string folder = recording::recording_folder(flags.recording_file);
  std::error_code error;
  if (!std::filesystem::exists(flags.recording_file, error) && std::filesystem::is_directory(folder, error)) {
    return print_error({ErrorCode::usage,
                        fmt::format("{} is not merged yet: its parts are in {}", flags.recording_file, folder),
                        "share a recording whose command has ended"});
  }
  const Result<recording::AnonymizedCopySummary> copy_summary =
      recording::write_anonymized_copy(flags.recording_file, flags.output_file, current_user_name());
  if (!copy_summary) return print_error(copy_summary.error());
  const report::SharedRecording result{flags.output_file, copy_summary->bytes, copy_summary->chunks,
                                       copy_summary->dropped_chunks, copy_summary->dropped_bytes};
  const std::string text =
      flags.as_json ? report::shared_recording_json(result) + "\n" : report::anonymized_copy_text(result);
  const Status write_status = write_to_stream(StandardStream::out, text);
  return write_status ? kExitSuccess : print_error(write_status.error());
}

}  // namespace

void add_share_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<ShareFlags>();
  verb.add_option("RECORDING", flags->recording_file, "recording written by record or import")->required();
  verb.add_option("-o,--output", flags->output_file, "write the copy to FILE, which must not exist")
      ->type_name("FILE")
      ->required();
  verb.add_flag("--json", flags->as_json, "one line of JSON (schema joulemap.share/1)");
  verb.callback([flags, &line] { line.exit_code = share_recording(*flags); });
}

}  // namespace joulemap::cli
