// SPDX-License-Identifier: Apache-2.0
#include "ingest/nsys/nsys_trace.h"

#include <algorithm>
#include <array>

#include "formats/gzip.h"
#include "formats/sqlite.h"
#include "ingest/nsys/nsys_session.h"

namespace joulemap::ingest {
namespace {

using formats::SqliteDatabase;

constexpr std::array<std::string_view, 7> kTraceTableNames = {"CUPTI_ACTIVITY_KIND_KERNEL",
                                                              "CUPTI_ACTIVITY_KIND_MEMCPY",
                                                              "CUPTI_ACTIVITY_KIND_MEMSET",
                                                              "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                                                              "CUPTI_ACTIVITY_KIND_RUNTIME",
                                                              "NVTX_EVENTS",
                                                              "META_DATA_EXPORT"};
constexpr const char* kExportAgainRemedy = "make it with: nsys export --type sqlite -o OUT.sqlite REPORT.nsys-rep";

Result<Trace> read_nsys_database(const SqliteDatabase& database) {
  const bool is_nsys_export = std::any_of(kTraceTableNames.begin(), kTraceTableNames.end(),
                                          [&](std::string_view table) { return database.has_table(table); });
  if (!is_nsys_export) return Error{ErrorCode::malformed, "not an export of Nsight Systems", kExportAgainRemedy};
  NsysSession session(database);
  session.read_session_tables();
  read_nsys_gpu_tables(session);
  read_nsys_host_tables(session);
  return std::move(session).finish();
}

}  // namespace

Result<Trace> read_nsys_trace(const std::string& path) {
  Result<SqliteDatabase> database = SqliteDatabase::open(path);
  if (!database) {
    Error error = std::move(database).error();
    if (error.code == ErrorCode::malformed) error.remedy = kExportAgainRemedy;
    const Result<formats::MaybeGzipFile> file = formats::MaybeGzipFile::open(path);
    if (file && file->is_compressed()) error = {ErrorCode::malformed, path + " is compressed", "gzip -dk " + path};
    return error;
  }
  Result<Trace> trace = read_nsys_database(*database);
  if (!trace) return std::move(trace).error().with_context(path);
  return trace;
}

Result<Trace> read_nsys_trace_bytes(std::string_view bytes) {
  Result<SqliteDatabase> database = SqliteDatabase::from_bytes(bytes);
  if (!database) return std::move(database).error();
  return read_nsys_database(*database);
}

}  // namespace joulemap::ingest
