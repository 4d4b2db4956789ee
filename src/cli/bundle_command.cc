// SPDX-License-Identifier: Apache-2.0
#include "cli/bundle_command.h"

#include <fmt/format.h>

#include <memory>

#include "bundle/bundle_file.h"
#include "bundle/statements.h"
#include "cli/attribution_options.h"
#include "cli/bundled_library.h"
#include "cli/model_file.h"
#include "cli/output.h"
#include "cli/page_file.h"
#include "recording/recording_parts.h"
#include "report/text/bundle_report.h"

namespace joulemap::cli {
namespace {

struct BundleFlags {
  std::vector<std::string> recordings;
  std::string output;
  AttributionFlags attribution_options;
  bool json = false;
};

bool names_library(const BundleFlags& flags) {
  return !flags.attribution_options.library.empty() && flags.attribution_options.library != "none";
}

// "run.joule" -> "run.bundle"
std::string default_output(std::string recording) {
  constexpr std::string_view kSuffix = ".joule";
  if (recording.ends_with(kSuffix)) recording.resize(recording.size() - kSuffix.size());
  return recording + ".bundle";
}

Status check_recordings(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (recording::has_recording_magic(path)) continue;
    return Error{ErrorCode::usage, fmt::format("{} is not a recording, or not merged yet", path),
                 "bundle the file that record or import wrote, after its command has ended"};
  }
  return Done{};
}

// The bytes of the recordings, and of the kernel library if there is one, in the order of the members.
Result<std::vector<ModelFile>> open_inputs(const BundleFlags& flags) {
  std::vector<ModelFile> files;
  std::vector<std::string> paths = flags.recordings;
  if (names_library(flags)) paths.push_back(flags.attribution_options.library);
  for (const std::string& path : paths) {
    Result<ModelFile> file = ModelFile::open(path);
    if (!file) return std::move(file).error();
    files.push_back(std::move(*file));
  }
  return files;
}

Result<bundle::Statements> statements_of(const BundleFlags& flags, const std::vector<std::string>& names) {
  Result<AttributionOptions> options = parse_attribution_options(flags.attribution_options);
  if (!options) return std::move(options).error();
  std::vector<bundle::NamedRecording> recordings;
  for (std::size_t i = 0; i < names.size(); ++i) recordings.push_back({flags.recordings[i], names[i]});
  return bundle::compute_statements(recordings, report_query(*options),
                                    without_library_path(options->diagnostics, flags.attribution_options.library));
}

int run_bundle(BundleFlags flags) {
  Result<std::vector<std::string>> recordings = recordings_or_default(std::move(flags.recordings), "bundle");
  if (!recordings) return print_error(recordings.error());
  flags.recordings = std::move(*recordings);
  if (const Status checked = check_recordings(flags.recordings); !checked) return print_error(checked.error());
  const std::string path = flags.output.empty() ? default_output(flags.recordings.front()) : flags.output;
  std::vector<std::string> inputs = flags.recordings;
  if (names_library(flags)) inputs.push_back(flags.attribution_options.library);
  Result<Output> output = Output::open(path, inputs);
  if (!output) return print_error(output.error());

  const std::vector<std::string> names = bundle::recording_names(flags.recordings);
  const Result<bundle::Statements> statements = statements_of(flags, names);
  if (!statements) return print_error(statements.error());
  const Result<std::vector<ModelFile>> files = open_inputs(flags);
  if (!files) return print_error(files.error());

  bundle::Manifest manifest;
  manifest.version = JOULEMAP_VERSION;
  manifest.verdict = statements->verdict;
  const AttributionFlags& options = flags.attribution_options;
  manifest.options = {options.mode, options.time, options.excluded_domains,
                      names_library(flags) ? std::string(bundle::kLibraryName) : options.library};
  std::vector<formats::TarMember> members;
  for (std::size_t i = 0; i < names.size(); ++i) members.push_back({names[i], files->at(i).bytes()});
  if (names_library(flags)) members.push_back({std::string(bundle::kLibraryName), files->back().bytes()});
  members.push_back({std::string(bundle::kEnvironmentName), statements->environment});
  members.push_back({std::string(bundle::kLayerReportName), statements->layer_report});
  members.push_back({std::string(bundle::kDomainReportName), statements->domain_report});
  const bundle::WrittenBundle written = bundle::write_bundle(std::move(manifest), members);
  if (const Status done = output->write_bytes(written.archive); !done) return print_error(done.error());

  const BundleResult result{path,
                            written.archive.size(),
                            written.manifest_sha256,
                            written.manifest.verdict,
                            written.manifest.members,
                            statements->diagnostics};
  const Status printed =
      write_to(Stream::out, flags.json ? report::bundle_json(result) + "\n" : report::bundle_text(result));
  return printed ? kExitSuccess : print_error(printed.error());
}

}  // namespace

void add_bundle_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<BundleFlags>();
  verb.add_option("RECORDING", flags->recordings, "recordings (run.joule); several files must be parts of one run");
  verb.add_option("-o,--output", flags->output, "write to FILE; default: the name of the recording with .bundle")
      ->type_name("FILE");
  add_analysis_option_flags(verb, flags->attribution_options);
  verb.add_flag("--json", flags->json, "one line of JSON (schema joulemap.bundle/1)");
  verb.callback([flags, &line] { line.exit_code = run_bundle(*flags); });
}

}  // namespace joulemap::cli
