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
  std::string recording;
  std::string output;
  bool json = false;
};

std::string name_of_this_user() {
  const passwd* const user = ::getpwuid(::getuid());  // NOLINT(concurrency-mt-unsafe): there is one thread
  return user != nullptr && user->pw_name != nullptr ? user->pw_name : "";
}

int run_share(const ShareFlags& flags) {
  const std::string folder = recording::recording_folder(flags.recording);
  std::error_code error;
  if (!std::filesystem::exists(flags.recording, error) && std::filesystem::is_directory(folder, error)) {
    return print_error({ErrorCode::usage,
                        fmt::format("{} is not merged yet: its parts are in {}", flags.recording, folder),
                        "share a recording whose command has ended"});
  }
  const Result<recording::AnonymizedCopySummary> shared =
      recording::write_anonymized_copy(flags.recording, flags.output, name_of_this_user());
  if (!shared) return print_error(shared.error());
  const report::SharedRecording result{flags.output, shared->bytes, shared->chunks, shared->dropped_chunks,
                                       shared->dropped_bytes};
  const std::string text =
      flags.json ? report::shared_recording_json(result) + "\n" : report::shared_recording_text(result);
  const Status written = write_to(Stream::out, text);
  return written ? kExitSuccess : print_error(written.error());
}

}  // namespace

void add_share_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<ShareFlags>();
  verb.add_option("RECORDING", flags->recording, "recording written by record or import")->required();
  verb.add_option("-o,--output", flags->output, "write the copy to FILE, which must not exist")
      ->type_name("FILE")
      ->required();
  verb.add_flag("--json", flags->json, "one line of JSON (schema joulemap.share/1)");
  verb.callback([flags, &line] { line.exit_code = run_share(*flags); });
}

}  // namespace joulemap::cli
