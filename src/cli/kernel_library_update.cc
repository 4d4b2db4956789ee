// SPDX-License-Identifier: Apache-2.0
#include "cli/kernel_library_update.h"

#include <fmt/format.h>

#include "attribution/analysis/report_builder.h"
#include "attribution/gpu/kernel_learning.h"
#include "base/small_file.h"
#include "recording/kernel_library_file.h"

namespace joulemap::cli {
namespace {

// Largest recording to learn from: about 20 million kernels, which take about 10 s.
constexpr std::uint64_t kMaxBytes = std::uint64_t{64} << 20;
constexpr std::string_view kLibraryNotWritableRemedy =
    "set JOULEMAP_DATA to a writable folder, or record with --no-learn";

}  // namespace

std::vector<KernelPower> read_powers_from_kernel_library(const std::string& library, const std::string& recording,
                                                         Diagnostics& diagnostics) {
  if (!file_exists(library)) return {};
  Result<recording::LoadedKernelLibrary> loaded = recording::load_kernel_library(library);
  if (!loaded) {
    diagnostics.add({"library_damaged", 1, loaded.error().message,
                     "the next recording that measures kernel powers creates a new library"});
    return {};
  }
  diagnostics.add_all(loaded->diagnostics);
  const auto priors = attribution::KernelPriors::make_from_library(std::move(loaded->powers));
  if (priors.empty()) return {};
  Result<std::vector<KernelPower>> needed = attribution::find_required_priors({&recording, 1}, priors);
  if (!needed) {
    diagnostics.add({"library_not_used", 1, needed.error().message, needed.error().remedy});
    return {};
  }
  return std::move(*needed);
}

void update_kernel_library(const std::string& library, RecordResult& result) {
  if (result.file_bytes > kMaxBytes) {
    result.diagnostics.add({"not_learnt", 1,
                            fmt::format("the recording is too large ({} MB) to add its kernel powers to the library",
                                        result.file_bytes >> 20),
                            "record a shorter run of the same program to update the kernel library"});
    return;
  }
  Result<std::vector<KernelPower>> findings = attribution::learn_kernel_powers({&result.file, 1});
  if (!findings) {
    result.diagnostics.add({"not_learnt", 1, findings.error().message, findings.error().remedy});
    return;
  }
  if (findings->empty()) return;
  const Result<Diagnostics> library_diagnostics = recording::add_to_kernel_library(library, std::move(*findings));
  if (library_diagnostics) {
    result.diagnostics.add_all(*library_diagnostics);
  } else {
    result.diagnostics.add(
        {"not_learnt", 1, library_diagnostics.error().message, std::string(kLibraryNotWritableRemedy)});
  }
}

}  // namespace joulemap::cli
