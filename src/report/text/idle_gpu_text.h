// SPDX-License-Identifier: Apache-2.0
//
// What idle GPUs waited for, in sentences and as a table. Pure; fits 80 columns.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/report_result.h"
#include "report/text/text_style.h"

namespace joulemap::report {

// Devices of several machines have the host's name in front: "node1/cpu".
bool is_cpu_device(std::string_view device);

// The cause in words, as the object of "waited for": "the DataLoader".
std::string_view idle_cause_words(IdleCause cause);

// Idle energy of a GPU as a fraction of all its energy, in total and by cause in descending order.
struct DeviceIdleShare {
  std::string device;
  double idle_share = 0;
  std::vector<std::pair<IdleCause, double>> shares_by_cause;
};
// One entry per GPU with known energy in `domains`.
std::vector<DeviceIdleShare> device_idle_shares(const std::vector<IdleEntry>& idle,
                                                const std::vector<DomainEnergy>& domains);
// "14 % of the energy of gpu0 was used while it was idle: 9 % waiting for the DataLoader." Empty below 5 % idle energy.
std::string idle_gpu_sentence(const DeviceIdleShare& share);

// idle_gpu_sentence() of each GPU, wrapped. Empty if no GPU has at least 5 % idle energy.
std::string idle_gpu_headline(const ReportResult& result);
// Table of the idle energy of each GPU by cause, and of the scopes that GPUs waited for most. Empty without idle
// energy.
std::string idle_gpu_table(const ReportResult& result, const TextStyle& style);

}  // namespace joulemap::report
