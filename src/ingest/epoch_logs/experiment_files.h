// SPDX-License-Identifier: Apache-2.0
//
// Files of an experiment that another tool wrote: one file per row, factors and repetition from the file name. Shared by
// the importers of power logs and of profiles. Lists folders; otherwise pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/epoch_logs/file_name_pattern.h"
#include "model/experiment_data.h"

namespace joulemap::ingest {

struct InputFile {
  std::string path;
  FileNamePattern::FieldValues field_values;  // empty without a pattern
};

// Returns the files that `inputs` name, and those in their folders that match the pattern, in natural order. Fails if a
// named file does not match, a folder is given without a pattern, or nothing matches. `example`: a pattern, for messages.
Result<std::vector<InputFile>> find_experiment_files(const std::vector<std::string>& inputs,
                                                     const FileNamePattern* pattern, std::string_view example);

// Factors of a pattern, still without levels: its fields, except the repetition ("run", "rep" or "repetition"). Without
// a pattern, all files are repetitions of one cell. Fails if the pattern has no other field.
Result<std::vector<ExperimentFactor>> make_pattern_factors(const FileNamePattern* pattern);

// Row of a file, with its levels and block; new levels are added to the factors. `number`: index of the file.
ExperimentRow make_experiment_row(const InputFile& file, const FileNamePattern* pattern, std::size_t number,
                                  ExperimentData& data);

// Sorts the levels of each factor in natural order (32, 64, 128) and adjusts the rows' level indices.
void sort_factor_levels(ExperimentData& data);

}  // namespace joulemap::ingest
