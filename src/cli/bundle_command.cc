// SPDX-License-Identifier: Apache-2.0
#include "cli/bundle_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/small_file.h"
#include "bundle/bundle_file.h"
#include "bundle/statements.h"
#include "cli/attribution_options.h"
#include "cli/bundle_statements.h"
#include "cli/model_file.h"
#include "cli/output.h"
#include "cli/page_file.h"
#include "recording/recording_parts.h"
#include "report/text/bundle_report.h"

namespace joulemap::cli {
namespace {

struct BundleFlags {
  std::vector<std::string> recordings;
  std::string output_file;
  AttributionFlags attribution_options;
  bool as_json = false;
};

bool has_kernel_library_option(const BundleFlags& flags) {
  return !flags.attribution_options.kernel_library_file.empty() &&
         flags.attribution_options.kernel_library_file != "none";
}

// "run.joule" -> "run.bundle"
std::string default_bundle_path(std::string recording) {
  constexpr std::string_view kSuffix = ".joule";
  if (recording.ends_with(kSuffix)) recording.resize(recording.size() - kSuffix.size());
  return recording + ".bundle";
}

// A bundle contains whole recordings only: report would also read parts that are not joined yet.
Status check_recording_files(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (recording::starts_with_recording_magic(path)) continue;
    std::error_code error;
    const bool has_recording_folder = std::filesystem::is_directory(recording::recording_folder(path), error);
    if (Result<FileDescriptor> file = open_for_reading(path); !file && !has_recording_folder)
      return std::move(file).error();
    return Error{ErrorCode::usage, fmt::format("{} is not a recording, or not merged yet", path),
                 "bundle the file that record or import wrote, after its command has ended"};
  }
  const Result<std::vector<recording::RecordingFile>> files = recording::open_recording(paths);
  if (!files) return files.error();
  for (const recording::RecordingFile& file : *files) {
    if (!file.is_part) continue;
    return Error{ErrorCode::usage, fmt::format("{} is a part of the recording that is not merged yet", file.path),
                 "wait until its command has ended; if it was killed, move the part away to bundle the rest"};
  }
  return Done{};
}

// Before anything is read. A size that is unknown is checked when the bundle is made.
Status check_input_size(const std::vector<std::string>& paths) {
  std::uint64_t bytes = 0;
  for (const std::string& path : paths) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    if (!error) bytes += size;
  }
  return bundle::check_bundle_size(paths.size(), bytes);
}

// Files in memory, so that the statements, the hashes and the archive are those of the same bytes.
class BundleInputs {
 public:
  Status read(const std::string& path, std::string member_name) {
    const Result<ModelFile> file = ModelFile::open(path);
    if (!file) return file.error();
    contents_.emplace_back(file->bytes());
    names_.push_back(std::move(member_name));
    return Done{};
  }
  std::vector<formats::TarMember> members() const {
    std::vector<formats::TarMember> members;
    for (std::size_t i = 0; i < names_.size(); ++i) members.push_back({names_[i], contents_[i]});
    return members;
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::string> contents_;
};

// `recordings`: in the order of the bundle.
Result<BundleInputs> read_bundle_inputs(const std::vector<std::string>& recordings, const std::string& library) {
  BundleInputs inputs;
  const std::vector<std::string> names = bundle::unique_recording_names(recordings);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (Status read_status = inputs.read(recordings[i], names[i]); !read_status) return std::move(read_status).error();
  }
  if (library.empty()) return inputs;
  if (!file_exists(library)) {
    return Error{ErrorCode::not_found, fmt::format("{}: no such kernel library", library),
                 "joulemap record writes one to its data folder; use --library none to bundle without one"};
  }
  if (Status read_status = inputs.read(library, std::string(bundle::kLibraryMemberName)); !read_status)
    return std::move(read_status).error();
  return inputs;
}

int run_bundle(BundleFlags flags) {
  Result<std::vector<std::string>> recordings = recordings_or_default(std::move(flags.recordings), "bundle");
  if (!recordings) return print_error(recordings.error());
  const AttributionFlags& options = flags.attribution_options;
  const std::string library = has_kernel_library_option(flags) ? options.kernel_library_file : std::string();
  const std::string path = flags.output_file.empty() ? default_bundle_path(recordings->front()) : flags.output_file;
  std::ranges::sort(*recordings);  // as analyse_recording() does: the order of the arguments does not matter
  std::vector<std::string> input_paths = *recordings;
  if (!library.empty()) input_paths.push_back(library);
  if (const Status checked = check_input_size(input_paths); !checked) return print_error(checked.error());
  if (const Status checked = check_recording_files(*recordings); !checked) return print_error(checked.error());
  Result<CommandOutput> output = CommandOutput::open(path, input_paths);
  if (!output) return print_error(output.error());

  const Result<BundleInputs> inputs = read_bundle_inputs(*recordings, library);
  if (!inputs) return print_error(inputs.error());
  std::vector<formats::TarMember> members = inputs->members();
  bundle::Manifest manifest;
  manifest.joulemap_version = JOULEMAP_VERSION;
  manifest.options = {options.attribution_mode, options.time_window, options.excluded_domains,
                      library.empty() ? options.kernel_library_file : std::string(bundle::kLibraryMemberName)};
  const Result<bundle::BundleStatements> statements = compute_bundle_statements(members, manifest.options);
  if (!statements) return print_error(statements.error());
  manifest.verdict = statements->verdict;
  members.push_back({std::string(bundle::kEnvironmentMemberName), statements->environment});
  members.push_back({std::string(bundle::kLayerReportMemberName), statements->layer_report});
  members.push_back({std::string(bundle::kDomainReportMemberName), statements->domain_report});
  const bundle::WrittenBundle written = bundle::write_bundle(std::move(manifest), members);
  if (const Status checked = bundle::check_bundle_size(input_paths.size(), written.archive_bytes.size()); !checked)
    return print_error(checked.error());
  if (const Status write_status = output->write_bytes(written.archive_bytes); !write_status)
    return print_error(write_status.error());

  const BundleResult result{path,
                            written.archive_bytes.size(),
                            written.manifest_sha256,
                            written.manifest.verdict,
                            written.manifest.members,
                            statements->diagnostics};
  const Status print_status = write_to_stream(
      StandardStream::out, flags.as_json ? report::bundle_json(result) + "\n" : report::bundle_text(result));
  return print_status ? kExitSuccess : print_error(print_status.error());
}

}  // namespace

void add_bundle_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<BundleFlags>();
  verb.add_option("RECORDING", flags->recordings,
                  "recordings; default: run.joule; several files must be parts of one run");
  verb.add_option("-o,--output", flags->output_file, "write to FILE; default: the name of the recording with .bundle")
      ->type_name("FILE");
  add_attribution_flags(verb, flags->attribution_options);
  verb.add_flag("--json", flags->as_json, "one line of JSON (schema joulemap.bundle/1)");
  verb.callback([flags, &line] { line.exit_code = run_bundle(*flags); });
}

}  // namespace joulemap::cli
