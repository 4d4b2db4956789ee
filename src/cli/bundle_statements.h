// SPDX-License-Identifier: Apache-2.0
//
// What a bundle with these members and options states. `bundle` stores it and `verify` compares it: one function, so
// that both compute it from the same bytes in the same way.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "attribution/ledger/machine_energy.h"
#include "base/text.h"
#include "bundle/bundle_file.h"
#include "bundle/bundle_member_copies.h"
#include "bundle/statements.h"
#include "cli/attribution_options.h"

namespace joulemap::cli {

// The command line refuses other options; a manifest may contain any text.
inline Status check_bundle_options(const bundle::BundleOptions& options) {
  constexpr std::array<std::string_view, 3> kBundleDomains = {"cpu", "ram", "gpu"};
  if (!attribution::parse_attribution_mode(options.attribution_mode)) {
    return Error{ErrorCode::malformed, fmt::format("{} is not a mode", joulemap::quoted(options.attribution_mode)), ""};
  }
  for (const std::string& domain : options.excluded_domains) {
    if (std::ranges::count(kBundleDomains, domain) == 0)
      return Error{ErrorCode::malformed, fmt::format("{} cannot be excluded", joulemap::quoted(domain)), ""};
  }
  const std::string& library = options.library_name;
  if (!library.empty() && library != "none" && library != bundle::kLibraryMemberName)
    return Error{ErrorCode::malformed, "the manifest names a kernel library outside of the bundle", ""};
  return Done{};
}

// `members`: recordings in the order of the bundle, and the kernel library if the options name it; others are ignored.
inline Result<bundle::BundleStatements> compute_bundle_statements(std::span<const formats::TarMember> members,
                                                                  const bundle::BundleOptions& options) {
  if (const Status checked = check_bundle_options(options); !checked) return checked.error();
  const Result<bundle::BundleMemberCopies> copies = bundle::BundleMemberCopies::create(members);
  if (!copies) return copies.error();
  if (copies->recording_paths().empty()) return Error{ErrorCode::malformed, "the bundle contains no recording", ""};
  AttributionFlags flags{options.attribution_mode, options.time_range, options.library_name, options.excluded_domains};
  if (options.library_name == bundle::kLibraryMemberName) {
    flags.kernel_library_file = copies->library_path();
    if (flags.kernel_library_file.empty())
      return Error{ErrorCode::malformed, "the bundle contains no kernel library", ""};
  }
  Result<AttributionOptions> attribution_options = parse_attribution_options(flags);
  if (!attribution_options) return copies->replace_paths_with_names(std::move(attribution_options).error());
  return bundle::compute_statements(*copies, make_report_query(*attribution_options), attribution_options->diagnostics);
}

}  // namespace joulemap::cli
