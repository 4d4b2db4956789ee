// SPDX-License-Identifier: Apache-2.0
#include "experiment/plan/spec_analysis.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace joulemap::experiment {
namespace {

// Marks the factors whose levels are compared; all if `names` is empty.
void read_compared_factors(const std::vector<std::string>& names, std::size_t line, ExperimentSpec& spec,
                           SpecErrors& errors) {
  if (names.empty()) return;
  for (ExperimentFactor& factor : spec.factors) factor.is_compared = false;
  for (const std::string& name : names) {
    const auto factor =
        std::find_if(spec.factors.begin(), spec.factors.end(),
                     [&](const ExperimentFactor& candidate_factor) { return candidate_factor.name == name; });
    if (factor == spec.factors.end()) {
      errors.add(line, fmt::format("compare: unknown factor {}", joulemap::quoted(name)));
    } else {
      factor->is_compared = true;
    }
  }
}

// Notes of an importer, which every report of the experiment shows.
void read_notes(const formats::DocumentValue* note_list, ExperimentSpec& spec, SpecErrors& errors) {
  if (note_list == nullptr) return;
  if (note_list->array() == nullptr) {
    errors.add(note_list->line, "write notes as [[note]], with two brackets");
    return;
  }
  for (const formats::DocumentValue& table : *note_list->array()) {
    Diagnostic note;
    std::size_t count = 1;
    SpecReader reader(&table, "[[note]]", errors);
    reader.read_text("code", note.code);
    reader.read_text("message", note.message);
    reader.read_text("remedy", note.remedy);
    reader.read_count("count", count, 1, std::size_t{1} << 50);
    reader.report_unknown_keys();
    note.count = count;
    spec.notes.add(std::move(note));
  }
}

}  // namespace

void read_analysis_keys(SpecReader& reader, ExperimentSpec& spec, SpecErrors& errors) {
  std::vector<std::string> compared_factor_names;
  reader.read_text_list("compare", compared_factor_names);
  const formats::DocumentValue* const compare_value = reader.take_value("compare");
  read_compared_factors(compared_factor_names, compare_value == nullptr ? 0 : compare_value->line, spec, errors);
  read_notes(reader.take_value("note"), spec, errors);
}

}  // namespace joulemap::experiment
