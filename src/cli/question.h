// SPDX-License-Identifier: Apache-2.0
//
// Flags that `report` and `export` share: which part of a recording to analyse, and how.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "attribution/analysis/recording_analysis.h"
#include "base/result.h"
#include "model/diagnostics.h"
#include "model/kernel_power.h"

namespace joulemap::cli {

struct QuestionFlags {
  std::string mode = "regress";
  std::string time;  // seconds: "30,60", or "30" until the end
  std::string library;
  std::vector<std::string> without;
};

// Declares --mode, --time, --library and --without. `flags` must outlive the parser.
void add_question_flags(CLI::App& verb, QuestionFlags& flags);

struct Question {
  attribution::Mode mode = attribution::Mode::regress;
  attribution::SecondsWithin within;
  std::optional<std::vector<KernelPower>> library;
  std::vector<DomainClass> without;
  Diagnostics diagnostics;  // of the library
};

// Reads the library, if one is named.
Result<Question> question_of(const QuestionFlags& flags);

}  // namespace joulemap::cli
