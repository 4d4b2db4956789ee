// SPDX-License-Identifier: Apache-2.0
//
// Output of `joulemap record` after the command has ended, in addition to record_summary.h with -v, or instead of it if
// the recording cannot be analyzed: energy, number of samples, file.
#pragma once

#include <string>

#include "model/record_result.h"

namespace joulemap::report {

std::string record_text(const RecordResult& result);
// Diagnostics of the recording and of its energies, as text.
std::string record_diagnostics_text(const RecordResult& result);

}  // namespace joulemap::report
