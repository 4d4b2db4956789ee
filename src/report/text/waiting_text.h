// SPDX-License-Identifier: Apache-2.0
//
// What idle GPUs waited for, in words and as a table. Pure; 80 columns.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/report_result.h"
#include "report/text/text_style.h"

namespace joulemap::report {

// What a device with this cause waited for: "the DataLoader".
std::string_view idle_cause_words(IdleCause cause);

// Energy of an idle GPU as fractions of all its energy, the largest cause first.
struct DeviceIdleShare {
  std::string device;
  double idle = 0;
  std::vector<std::pair<IdleCause, double>> causes;
};
std::vector<DeviceIdleShare> device_idle_shares(const std::vector<IdleEntry>& idle,
                                                const std::vector<DomainEnergy>& domains);
// "14 % of the energy of gpu0 was used while it was idle: 9 % waiting for the DataLoader." Empty for a small share.
std::string waiting_sentence(const DeviceIdleShare& share);

// One line for each GPU: "61 % of the energy of gpu0 was used while it waited for the DataLoader". Empty where no GPU
// was idle for long.
std::string waiting_headline(const ReportResult& result);
// Idle energy by cause, the largest first, and the scopes that GPUs waited for most.
std::string waiting_table(const ReportResult& result, const TextStyle& style);

}  // namespace joulemap::report
