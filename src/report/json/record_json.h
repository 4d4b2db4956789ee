// SPDX-License-Identifier: Apache-2.0
//
// `joulemap record --json`: schema joulemap.record/1, one line at the end. `record --announce`: schema
// joulemap.recording/1, one line when the recording begins. Programs read them: keys may be added, never removed.
#pragma once

#include <span>
#include <string>

#include "model/record_result.h"

namespace joulemap::report {

std::string record_json(const RecordResult& result);

// `variables`: environment variables ("NAME=value") with which a process joins the running recording.
std::string recording_variables_json(std::span<const std::string> variables);

}  // namespace joulemap::report
