// SPDX-License-Identifier: Apache-2.0
#include "report/text/share_report.h"

#include <fmt/format.h>

#include "formats/json_writer.h"
#include "model_json/diagnostics_json.h"
#include "report/text/diagnostics_text.h"

namespace joulemap::report {
namespace {

Diagnostics make_share_diagnostics(const SharedRecording& shared) {
  Diagnostics diagnostics;
  if (shared.dropped_chunk_count > 0) {
    diagnostics.add({"chunks_skipped", shared.dropped_chunk_count,
                     "the copy omits chunks that this version cannot read", "copy it with a newer joulemap"});
  }
  if (shared.dropped_bytes > 0) {
    diagnostics.add({"recording_damaged", 1,
                     fmt::format("the copy omits {} bytes that belong to no complete chunk", shared.dropped_bytes),
                     ""});
  }
  return diagnostics;
}

}  // namespace

std::string anonymized_copy_text(const SharedRecording& shared) {
  return fmt::format(
             "{}: {} bytes\n"
             "replaced: host and user names, boot, process ids, folders, secrets in the command, kernel build, GPU "
             "UUIDs\n"
             "kept: names of modules, functions, regions and metrics, versions, CPU and GPU model, date; read them "
             "with\n"
             "  joulemap report {} --by function\n",
             shared.output_file, shared.file_bytes, shared.output_file) +
         diagnostics_text(make_share_diagnostics(shared));
}

std::string shared_recording_json(const SharedRecording& shared) {
  formats::JsonWriter json;
  json.begin_object()
      .member("schema", "joulemap.share/1")
      .member("file", shared.output_file)
      .member("file_bytes", shared.file_bytes)
      .member("chunks", shared.chunk_count)
      .member("dropped_chunks", shared.dropped_chunk_count)
      .member("dropped_bytes", shared.dropped_bytes);
  write_diagnostics(json, make_share_diagnostics(shared));
  json.end_object();
  return std::move(json).text();
}

}  // namespace joulemap::report
