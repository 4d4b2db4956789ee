// SPDX-License-Identifier: Apache-2.0
#include "model_json/cause_json.h"

namespace joulemap {

void write_energy_cause(formats::JsonWriter& json, const std::optional<EnergyCause>& cause) {
  json.text_or_null("cause", cause ? to_string(cause->largest_class) : "");
  json.text_or_null("cause_basis", cause ? to_string(cause->basis) : "").key("cause_s");
  if (!cause) {
    json.null();
    return;
  }
  json.begin_object();
  for (const EnergyCauseClass cause_class : kCauseClasses)
    json.member(to_string(cause_class), cause->times_s[cause_class]);
  json.end_object();
}

}  // namespace joulemap
