// SPDX-License-Identifier: Apache-2.0
//
// Reads the tables of measurements that `joulemap collect --tables` writes into a folder
// (docs/reference/prediction-data.md), and the operation lists of networks in the sibling folders `networks` and
// `seed`.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "predict/fit/fitting.h"

namespace joulemap::cli {

// Concatenates the tables of several folders. Fails without a table of operations; all other tables are optional.
Result<predict::FitTables> read_measured_tables(const std::vector<std::string>& folders, const std::string& device);

// Paths of the existing files that read_measured_tables() may read.
std::vector<std::string> measured_table_files(const std::vector<std::string>& folders);

// Reads networks.csv.gz, or networks.csv, of the folder. Fails if neither exists.
Result<std::string> read_networks_table(const std::string& folder);

}  // namespace joulemap::cli
