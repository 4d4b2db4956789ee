// SPDX-License-Identifier: Apache-2.0
//
// Citation of a run in a paper, as one sentence with energy, uncertainty, hardware, sensors and version, and in a
// Hugging Face model card, as the block co2_eq_emissions. Carbon intensity and location come from the caller; they are
// never assumed. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/carbon_account.h"
#include "model/report_result.h"

namespace joulemap::report {

// Of a part of a run (--time): "only 5.00 s of the run".
std::string partial_run_text(const ReportResult& result);

// The result contains no energy, or only that of excluded domains. `action`: "disclose energy".
Error missing_energy_error(const ReportResult& result, std::string_view action);

// `hardware_description` replaces the hardware that the recording names; empty: that of the recording. `version`: of
// joulemap.
std::string citation_text(const ReportResult& result, std::string_view hardware, std::string_view version);

struct ModelCardOptions {
  std::string compute_location;          // empty: the region of the carbon intensity
  std::string training_type;             // "pre-training", "fine-tuning"
  std::string hardware_description;      // replaces the hardware that the recording names, unless empty
  std::optional<CarbonAccount> account;  // provides the emissions
};

// YAML for the header of a model card. Emissions come from the account; without a carbon intensity they are left out.
// Fails if the energy is unknown.
Result<std::string> model_card_markdown(const ReportResult& result, const ModelCardOptions& query,
                                        std::string_view version);

}  // namespace joulemap::report
