// SPDX-License-Identifier: Apache-2.0
//
// Disclosures: the energy of a run in formats that others define, for model cards, bills of materials and reports to
// authorities. Measured and estimated energy are entries of their own, and the interval is kept, as far as a format
// allows. Nothing is invented: what neither the recording nor the caller states is left out. Pure.
//
// To add a format, write a function and add a line to disclosure.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/carbon_account.h"
#include "model/report_result.h"

namespace joulemap::report {

struct DisclosureOptions {
  std::string model_name;
  std::string lifecycle_stage;           // "training", "fine-tuning" or "inference"; empty: unknown
  std::string functional_unit = "run";   // of SCI: "run", "step", "epoch" or "sample"
  std::string compute_location;          // of the run; empty: unknown
  std::string training_type;             // of a Hugging Face model card: "pre-training", "fine-tuning"
  std::string hardware_description;      // replaces the hardware that the recording names, unless empty
  std::string base_file;                 // name of the file that contains base_json
  std::string base_json;                 // BoAmps: a document whose values are kept; empty: none
  std::optional<CarbonAccount> account;  // carbon; none: without
  std::int64_t created_unix_s = 0;       // when the document is made
};

struct Disclosure {
  std::string text;
  std::vector<std::string> missing_members;  // members that the format requires and that are unknown
};

struct DisclosureFormat {
  std::string_view name;  // "cyclonedx"
  Result<Disclosure> (*write_disclosure)(const ReportResult& result, const DisclosureOptions& options,
                                         std::string_view version);
};

// All formats, in the order of the help.
std::span<const DisclosureFormat> disclosure_formats();
// Null if there is no such format.
const DisclosureFormat* find_disclosure_format(std::string_view name);

// The formats. Each fails if the energy is unknown, or with ErrorCode::usage if a required option is missing.
Result<Disclosure> huggingface_disclosure(const ReportResult&, const DisclosureOptions&, std::string_view version);
Result<Disclosure> boamps_disclosure(const ReportResult&, const DisclosureOptions&, std::string_view version);
Result<Disclosure> spdx3_disclosure(const ReportResult&, const DisclosureOptions&, std::string_view version);
Result<Disclosure> cyclonedx_disclosure(const ReportResult&, const DisclosureOptions&, std::string_view version);
Result<Disclosure> sci_disclosure(const ReportResult&, const DisclosureOptions&, std::string_view version);
Result<Disclosure> eu_ai_act_disclosure(const ReportResult&, const DisclosureOptions&, std::string_view version);

}  // namespace joulemap::report
