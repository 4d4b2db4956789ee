// SPDX-License-Identifier: Apache-2.0
//
// The energy of a run without probing, by provenance, and what it does not include. Pure; joules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/report_result.h"

namespace joulemap {

// Sum over the counted domains of this provenance, without probing; none when no counted domain has such a value.
std::optional<EnergyWithProvenance> energy_without_probing(const ReportResult& result, Provenance provenance);

// Whether a domain is in no sum and no other domain contains it: it was excluded (--exclude), or it is unknown what it
// covers.
inline bool is_outside_totals(const DomainEnergy& domain) { return !domain.is_counted && domain.part_of.empty(); }

// The domains whose energy no sum contains: those without a value, and those of is_outside_totals().
std::vector<std::string> list_domains_not_included(const ReportResult& result);

}  // namespace joulemap
