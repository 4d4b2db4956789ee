// SPDX-License-Identifier: Apache-2.0
//
// From recordings to what `joulemap report` says. Reads the files twice, in bounded memory: once for when the command
// began and ended, once for the samples between.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "model/report_result.h"

namespace joulemap::attribution {

// The files of one recording, or of its parts. Fails when they cannot be read at all or do not belong together.
Result<ReportResult> build_report(std::span<const std::string> paths);

}  // namespace joulemap::attribution
