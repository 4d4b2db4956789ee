// SPDX-License-Identifier: Apache-2.0
//
// Reads the tables of measurements that `joulemap collect --tables` writes into a folder (docs/prediction-data.md), and
// the operation lists of networks in the sibling folders `networks` and `seed`.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "predict/fit/fitting.h"

namespace joulemap::cli {

// Concatenates the rows of several folders. Networks are optional; operations are required.
Result<predict::FitTables> read_measured_tables(const std::vector<std::string>& folders, const std::string& device);

// The files that read_measured_tables reads, as far as they exist.
std::vector<std::string> measured_table_files(const std::vector<std::string>& folders);

// Reads networks.csv.gz of the folder.
Result<std::string> read_networks_table(const std::string& folder);

}  // namespace joulemap::cli
