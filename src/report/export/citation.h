// SPDX-License-Identifier: Apache-2.0
//
// A run for a paper and a model card: one sentence with energy, uncertainty, hardware, sensors and version, and the
// emissions block of Hugging Face model cards. Nothing is guessed: carbon intensity and location come from the caller,
// hardware and provenance from the recording. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "model/report_result.h"

namespace joulemap::report {

// `hardware` is used if the recording does not name the hardware; may be empty.
std::string citation_text(const ReportResult& result, std::string_view hardware, std::string_view version);

struct ModelCardOptions {
  std::optional<double> gco2_per_kwh;  // of the grid; without it emissions are left out
  std::string location;
  std::string training_type;  // "pre-training", "fine-tuning"
  std::string hardware;       // used if the recording does not name the hardware
};

// YAML for the header of a model card. Fails if the recording has no energy.
Result<std::string> model_card(const ReportResult& result, const ModelCardOptions& query, std::string_view version);

}  // namespace joulemap::report
