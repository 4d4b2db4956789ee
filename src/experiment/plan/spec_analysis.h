// SPDX-License-Identifier: Apache-2.0
//
// Reads the members of experiment.toml that only the analysis uses: `compare`, the factors whose levels are compared,
// and `[[note]]`, the notes of an importer. Only parse_spec calls it, after the factors are read.
#pragma once

#include "experiment/plan/experiment_spec.h"
#include "experiment/plan/spec_reader.h"

namespace joulemap::experiment {

void read_analysis_keys(SpecReader& reader, ExperimentSpec& spec, SpecErrors& errors);

}  // namespace joulemap::experiment
