// SPDX-License-Identifier: Apache-2.0
//
// Output of `joulemap record` after the command has ended, where no report of the run is possible or more details are
// wanted: energy, samples, file. record_answer.h has the answer itself.
#pragma once

#include <string>

#include "model/record_result.h"

namespace joulemap::report {

std::string record_text(const RecordResult& result);
// Diagnostics of the recording.
std::string record_notes(const RecordResult& result);

}  // namespace joulemap::report
