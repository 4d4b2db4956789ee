// SPDX-License-Identifier: Apache-2.0
#include "model_json/diagnostics_json.h"

namespace joulemap {

void write_diagnostics(formats::JsonWriter& json, const Diagnostics& diagnostics) {
  json.key("diagnostics").begin_array();
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    json.begin_object()
        .member("code", diagnostic.code)
        .member("count", diagnostic.count)
        .member("message", diagnostic.message)
        .text_or_null("remedy", diagnostic.remedy)
        .end_object();
  }
  json.end_array();
}

}  // namespace joulemap
