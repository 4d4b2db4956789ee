// SPDX-License-Identifier: Apache-2.0
//
// joulemap advise [FILE...] [--json] [-o FILE]
#pragma once

#include <span>
#include <string>

#include "attribution/analysis/report_builder.h"
#include "base/result.h"
#include "cli/command.h"
#include "model/advice.h"

namespace joulemap::cli {

// Advice on the recording, from its steady state where it has one. `query.level` is not used. `operations`: rows of the
// whole run by operation; building them takes another analysis of the recording.
Result<Advice> advise_on_recordings(std::span<const std::string> files, const attribution::ReportQuery& query,
                                    const ReportResult& operations);

void add_advise_command(CLI::App& verb, CommandLine& line);

}  // namespace joulemap::cli
