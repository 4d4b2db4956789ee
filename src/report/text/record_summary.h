// SPDX-License-Identifier: Apache-2.0
//
// Summary at the end of `joulemap record`: total energy with its interval, what the GPUs waited for, the layers with
// the most energy, advice, and the next commands. Also the live line. Pure; fits 80 columns.
#pragma once

#include <optional>
#include <string>

#include "model/advice.h"
#include "model/record_result.h"
#include "model/report_result.h"
#include "report/text/text_style.h"

namespace joulemap::report {

struct RecordSummary {
  const ReportResult& layer_report;
  const ReportResult& module_report;  // of the same recording
  const Advice& advice;               // without findings where nothing is known
  const std::string& recording_file;  // path of the recording
};
std::string record_summary_text(const RecordSummary& answer, const TextStyle& style);

// The line that `record` shows while the command runs: "joulemap: 12.3 s   351 W   4.32 kJ   step 412   10.5 J/step".
std::string live_status_text(const LiveStatus& status);

}  // namespace joulemap::report
