// SPDX-License-Identifier: Apache-2.0
#include "report/disclosure/disclosure.h"

#include <algorithm>
#include <array>

#include "report/export/citation.h"

namespace joulemap::report {
namespace {

constexpr std::array<DisclosureFormat, 6> kDisclosureFormats = {{
    {"huggingface", &huggingface_disclosure},
    {"boamps", &boamps_disclosure},
    {"spdx3", &spdx3_disclosure},
    {"cyclonedx", &cyclonedx_disclosure},
    {"sci", &sci_disclosure},
    {"eu-ai-act", &eu_ai_act_disclosure},
}};

}  // namespace

std::span<const DisclosureFormat> disclosure_formats() { return kDisclosureFormats; }

const DisclosureFormat* find_disclosure_format(std::string_view name) {
  const auto matching_format = std::ranges::find(kDisclosureFormats, name, &DisclosureFormat::name);
  return matching_format == kDisclosureFormats.end() ? nullptr : &*matching_format;
}

Result<Disclosure> huggingface_disclosure(const ReportResult& result, const DisclosureOptions& options,
                                          std::string_view version) {
  Result<std::string> model_card = model_card_markdown(
      result, {options.compute_location, options.training_type, options.hardware_description, options.account},
      version);
  if (!model_card) return std::move(model_card).error();
  return Disclosure{std::move(*model_card), {}};
}

}  // namespace joulemap::report
