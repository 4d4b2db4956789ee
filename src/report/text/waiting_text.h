// SPDX-License-Identifier: Apache-2.0
//
// What idle GPUs waited for, in words and as a table. Pure; 80 columns.
#pragma once

#include <string>
#include <string_view>

#include "model/report_result.h"
#include "report/text/text_style.h"

namespace joulemap::report {

// What a device with this cause waited for: "the DataLoader".
std::string_view idle_cause_words(IdleCause cause);

// One line for each GPU: "61 % of the energy of gpu0 was used while it waited for the DataLoader". Empty where no GPU
// was idle for long.
std::string waiting_headline(const ReportResult& result);
// Idle energy by cause, the largest first, and the scopes that GPUs waited for most.
std::string waiting_table(const ReportResult& result, const TextStyle& style);

}  // namespace joulemap::report
