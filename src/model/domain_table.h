// SPDX-License-Identifier: Apache-2.0
//
// DomainTable: the energy of a run, one row for each domain. Plain data; energy/make_domain_table.h makes it.
#pragma once

#include <vector>

#include "model/diagnostics.h"
#include "model/domain_energy.h"
#include "model/energy_totals.h"

namespace joulemap {

struct DomainTable {
  std::vector<DomainEnergy> rows;
  EnergyTotals totals;
  Diagnostics diagnostics;
};

}  // namespace joulemap
