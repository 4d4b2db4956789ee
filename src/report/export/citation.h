// SPDX-License-Identifier: Apache-2.0
//
// A run for a paper and for a model card: one sentence that says what was used, how sure that is, on what, measured
// how and by what; and the block of emissions that Hugging Face's cards have. Nothing is made up: carbon intensity and
// place are what the caller says, hardware and provenance what the recording says. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "model/report_result.h"

namespace joulemap::report {

// `hardware`: what it ran on, where the recording does not tell; empty: what the recording tells.
std::string citation_text(const ReportResult& result, std::string_view hardware, std::string_view version);

struct CardQuery {
  std::optional<double> gco2_per_kwh;  // of the grid: emissions are left out without it
  std::string location;
  std::string training_type;  // "pre-training", "fine-tuning"
  std::string hardware;       // where the recording does not tell
};

// YAML for the head of a card. Fails where the recording knows no energy.
Result<std::string> model_card(const ReportResult& result, const CardQuery& query, std::string_view version);

}  // namespace joulemap::report
