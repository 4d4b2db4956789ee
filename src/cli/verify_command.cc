// SPDX-License-Identifier: Apache-2.0
#include "cli/verify_command.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/output_file.h"
#include "base/small_file.h"
#include "bundle/bundle_file.h"
#include "bundle/statements.h"
#include "cli/attribution_options.h"
#include "cli/bundled_library.h"
#include "cli/model_file.h"
#include "cli/output.h"
#include "report/text/bundle_report.h"

namespace joulemap::cli {
namespace {

namespace fs = std::filesystem;

struct VerifyFlags {
  std::string bundle;
  bool json = false;
};

// A private folder for the recordings of a bundle; removed with its files.
class ExtractionFolder {
 public:
  static Result<ExtractionFolder> create() {
    std::error_code error;
    std::string path = (fs::temp_directory_path(error) / "joulemap-verify-XXXXXX").string();
    if (error) return Error{ErrorCode::io, "the folder for temporary files is missing", "set TMPDIR"};
    if (::mkdtemp(path.data()) == nullptr) return system_error("create", path, errno);
    return ExtractionFolder(std::move(path));
  }
  ExtractionFolder(ExtractionFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ExtractionFolder& operator=(ExtractionFolder&&) = delete;
  ~ExtractionFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }

  // Names come from this program, never from the bundle.
  Result<std::string> write(const std::string& name, std::string_view content) const {
    std::string path = path_ + "/" + name;
    if (Status written = replace_file(path, content); !written) return std::move(written).error();
    return path;
  }

 private:
  explicit ExtractionFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Computes from the recordings of the bundle what it states.
Result<bundle::Statements> compute_again(const bundle::OpenedBundle& opened) {
  const Result<ExtractionFolder> folder = ExtractionFolder::create();
  if (!folder) return folder.error();
  std::vector<bundle::NamedRecording> recordings;
  for (const formats::TarMember& member : opened.recordings()) {
    Result<std::string> path = folder->write(fmt::format("{}.joule", recordings.size()), member.content);
    if (!path) return std::move(path).error();
    recordings.push_back({std::move(*path), member.name});
  }
  if (recordings.empty()) return Error{ErrorCode::malformed, "the bundle contains no recording", ""};
  const bundle::BundleOptions& stated = opened.manifest.options;
  AttributionFlags flags{stated.mode, stated.time, stated.library, stated.excluded_domains};
  if (stated.library == bundle::kLibraryName) {
    const std::optional<std::string_view> content = opened.content(bundle::kLibraryName);
    if (!content) return Error{ErrorCode::malformed, "the bundle contains no kernel library", ""};
    Result<std::string> path = folder->write("library", *content);
    if (!path) return std::move(path).error();
    flags.library = std::move(*path);
  } else if (!stated.library.empty() && stated.library != "none") {
    return Error{ErrorCode::malformed, "the manifest names a kernel library outside of the bundle", ""};
  }
  Result<AttributionOptions> options = parse_attribution_options(flags);
  if (!options) return std::move(options).error();
  return bundle::compute_statements(recordings, report_query(*options),
                                    without_library_path(options->diagnostics, flags.library));
}

int run_verify(const VerifyFlags& flags) {
  const Result<ModelFile> file = ModelFile::open(flags.bundle);
  if (!file) return print_error(file.error());
  Result<bundle::OpenedBundle> opened = bundle::open_bundle(file->bytes());
  if (!opened) return print_error(std::move(opened).error().with_context(flags.bundle));
  VerificationResult result;
  result.file = flags.bundle;
  result.manifest_sha256 = opened->manifest_sha256;
  result.bundle_version = opened->manifest.version;
  result.own_version = JOULEMAP_VERSION;
  result.damage = opened->damage;
  result.verdict = opened->manifest.verdict;
  result.recordings = opened->recordings().size();
  if (const Result<bundle::Statements> computed = compute_again(*opened)) {
    result.differences = bundle::compare_statements(*opened, *computed);
  } else {
    result.error = computed.error().message;
  }
  const std::string text = flags.json ? report::verification_json(result) + "\n" : report::verification_text(result);
  if (const Status printed = write_to(Stream::out, text); !printed) return print_error(printed.error());
  return result.is_valid() ? kExitSuccess : kExitFailure;
}

}  // namespace

void add_verify_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<VerifyFlags>();
  verb.add_option("BUNDLE", flags->bundle, "file that joulemap bundle wrote; - is stdin")->required();
  verb.add_flag("--json", flags->json, "one line of JSON (schema joulemap.verification/1)");
  verb.callback([flags, &line] { line.exit_code = run_verify(*flags); });
}

}  // namespace joulemap::cli
