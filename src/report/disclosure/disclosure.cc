// SPDX-License-Identifier: Apache-2.0
#include "report/disclosure/disclosure.h"

#include <algorithm>
#include <array>

#include "report/export/citation.h"

namespace joulemap::report {
namespace {

constexpr std::array<DisclosureFormat, 6> kFormats = {{
    {"huggingface", &huggingface_disclosure},
    {"boamps", &boamps_disclosure},
    {"spdx3", &spdx3_disclosure},
    {"cyclonedx", &cyclonedx_disclosure},
    {"sci", &sci_disclosure},
    {"eu-ai-act", &eu_ai_act_disclosure},
}};

}  // namespace

std::span<const DisclosureFormat> disclosure_formats() { return kFormats; }

const DisclosureFormat* find_disclosure_format(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &DisclosureFormat::name);
  return found == kFormats.end() ? nullptr : &*found;
}

Result<Disclosure> huggingface_disclosure(const ReportResult& result, const DisclosureOptions& options,
                                          std::string_view version) {
  Result<std::string> card =
      model_card(result, {options.location, options.training_type, options.hardware, options.account}, version);
  if (!card) return std::move(card).error();
  return Disclosure{std::move(*card), {}};
}

}  // namespace joulemap::report
