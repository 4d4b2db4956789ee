// SPDX-License-Identifier: Apache-2.0
#include "report/json/import_json.h"

#include "formats/json_writer.h"
#include "model_json/diagnostics_json.h"

namespace joulemap::report {

std::string import_json(const ImportResult& result) {
  formats::JsonWriter json;
  json.begin_object().member("schema", "joulemap.import/1").member("format", result.format);
  json.key("inputs").begin_array();
  for (const std::string& input : result.inputs) json.value(input);
  json.end_array()
      .member("file", result.file)
      .member("file_bytes", result.file_bytes)
      .member("events", result.events)
      .member("events_dropped", result.events_dropped)
      .member("kernels", result.kernels)
      .member("kernel_s", result.kernel_s)
      .member("placed_share", result.kernel_scope_share)
      .member("thread_s", result.thread_time_s)
      .member("steps", result.steps)
      .member("samples", result.samples)
      .member("power_rows_dropped", result.power_rows_dropped)
      .member("elapsed_s", result.elapsed_s);
  write_diagnostics(json, result.diagnostics);
  json.end_object();
  return std::move(json).text();
}

}  // namespace joulemap::report
