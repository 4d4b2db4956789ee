// SPDX-License-Identifier: Apache-2.0
#include "report/text/share_report.h"

#include <fmt/format.h>

#include "formats/json_writer.h"
#include "model_json/diagnostics_json.h"
#include "report/text/diagnostics_text.h"

namespace joulemap::report {
namespace {

Diagnostics diagnostics_of(const SharedRecording& shared) {
  Diagnostics diagnostics;
  if (shared.dropped_chunks > 0) {
    diagnostics.add({"chunks_skipped", shared.dropped_chunks, "the copy omits chunks that this version cannot read",
                     "copy it with a newer joulemap"});
  }
  if (shared.dropped_bytes > 0) {
    diagnostics.add({"recording_damaged", 1,
                     fmt::format("the copy omits {} bytes that belong to no complete chunk", shared.dropped_bytes),
                     ""});
  }
  return diagnostics;
}

}  // namespace

std::string shared_recording_text(const SharedRecording& shared) {
  return fmt::format(
             "{}: {} bytes\n"
             "replaced: host and user names, boot, process ids, folders, secrets in the command, kernel build, GPU "
             "UUIDs\n"
             "kept: names of modules, functions, regions and metrics, versions, CPU and GPU model, date; read them "
             "with\n"
             "  joulemap report {} --by function\n",
             shared.file, shared.bytes, shared.file) +
         diagnostics_text(diagnostics_of(shared));
}

std::string shared_recording_json(const SharedRecording& shared) {
  formats::JsonWriter json;
  json.begin_object()
      .member("schema", "joulemap.share/1")
      .member("file", shared.file)
      .member("file_bytes", shared.bytes)
      .member("chunks", shared.chunks)
      .member("dropped_chunks", shared.dropped_chunks)
      .member("dropped_bytes", shared.dropped_bytes);
  write_diagnostics(json, diagnostics_of(shared));
  json.end_object();
  return std::move(json).text();
}

}  // namespace joulemap::report
