// SPDX-License-Identifier: Apache-2.0
//
// Reads the tables of measurements that `joulemap collect --tables` writes into a folder (docs/prediction-data.md), and
// the lists of operations of networks in the folders `networks` and `seed` beside it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "predict/fit/fitting.h"

namespace joulemap::cli {

// Several folders are one table: the rows of all. Of networks there may be none; operations there must be.
Result<predict::FitTables> read_measured_tables(const std::vector<std::string>& folders, const std::string& device);

// The files that it reads, as far as they are there.
std::vector<std::string> measured_table_files(const std::vector<std::string>& folders);

// Its networks.csv.gz.
Result<std::string> read_networks_table(const std::string& folder);

}  // namespace joulemap::cli
