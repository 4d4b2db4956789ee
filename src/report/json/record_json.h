// SPDX-License-Identifier: Apache-2.0
//
// `joulemap record --json`: schema joulemap.record/1, one line. Keys may be added, never removed. And what `--announce`
// tells before: schema joulemap.recording/1, likewise.
#pragma once

#include <span>
#include <string>

#include "model/record_result.h"

namespace joulemap::report {

std::string record_json(const RecordResult& result);

// What a process needs in its environment ("NAME=value") to become part of the recording that has begun.
std::string recording_json(std::span<const std::string> variables);

}  // namespace joulemap::report
