// SPDX-License-Identifier: Apache-2.0
#include "cli/verify_command.h"

#include <memory>

#include "bundle/bundle_file.h"
#include "bundle/statements.h"
#include "cli/bundle_statements.h"
#include "cli/model_file.h"
#include "cli/output.h"
#include "report/text/bundle_report.h"

namespace joulemap::cli {
namespace {

struct VerifyFlags {
  std::string bundle_file;
  bool as_json = false;
};

int verify_bundle(const VerifyFlags& flags) {
  const Result<ModelFile> file = ModelFile::open(flags.bundle_file);
  if (!file) return print_error(file.error());
  Result<bundle::OpenedBundle> opened = bundle::open_bundle(file->bytes());
  if (!opened) return print_error(std::move(opened).error().with_context(flags.bundle_file));
  VerificationResult result;
  result.file = flags.bundle_file;
  result.manifest_sha256 = opened->manifest_sha256;
  result.bundle_version = opened->manifest.joulemap_version;
  result.verifier_version = JOULEMAP_VERSION;
  result.damage = opened->damage_descriptions;
  result.stated_verdict = opened->manifest.verdict;
  result.recordings = opened->recording_members().size();
  if (const Result<bundle::BundleStatements> computed =
          compute_bundle_statements(opened->members, opened->manifest.options)) {
    result.differences = bundle::compare_statements(*opened, *computed);
    if (result.damage.empty()) result.computed_verdict = computed->verdict;
  } else {
    result.error = computed.error().message;
  }
  const std::string text = flags.as_json ? report::verification_json(result) + "\n" : report::verification_text(result);
  if (const Status print_status = write_to_stream(StandardStream::out, text); !print_status)
    return print_error(print_status.error());
  return result.is_valid() ? kExitSuccess : kExitFailure;
}

}  // namespace

void add_verify_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<VerifyFlags>();
  verb.add_option("BUNDLE", flags->bundle_file, "file that joulemap bundle wrote; - is stdin")->required();
  verb.add_flag("--json", flags->as_json, "one line of JSON (schema joulemap.verification/1)");
  verb.callback([flags, &line] { line.exit_code = verify_bundle(*flags); });
}

}  // namespace joulemap::cli
