// SPDX-License-Identifier: Apache-2.0
//
// Members of experiment.toml that only analyses read: `compare`, the factors whose levels are set against each other, and
// `[[note]]`, what an importer had to say. Used by parse_spec alone, when the factors are known.
#pragma once

#include "experiment/plan/experiment_spec.h"
#include "experiment/plan/spec_reader.h"

namespace joulemap::experiment {

void read_analysis(SpecReader& reader, ExperimentSpec& spec, Mistakes& mistakes);

}  // namespace joulemap::experiment
