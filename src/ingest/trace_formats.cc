// SPDX-License-Identifier: Apache-2.0
#include "ingest/trace_formats.h"

#include <vector>

#include "ingest/kineto/kineto_reader.h"
#include "ingest/nsys/nsys_trace.h"
#include "ingest/onnxruntime/onnxruntime_trace.h"
#include "ingest/tensorflow/tensorflow_trace.h"
#include "ingest/xplane/xplane_trace.h"

namespace joulemap::ingest {
namespace {

// Adapts a reader that does not report progress: it reads a file as a whole, within seconds.
template <Result<Trace> (*read)(const std::string&)>
Result<Trace> read_without_progress(const std::string& path, const ProgressCallback& /*on_progress*/) {
  return read(path);
}

}  // namespace

std::span<const TraceFormat> trace_formats() {
  static const std::vector<TraceFormat> kTraceFormats = {
      {"kineto", "PyTorch's profiler: trace.json, trace.json.gz",
       [](const std::string& path, const ProgressCallback& on_progress) {
         return read_kineto(path, {.on_progress = on_progress});
       }},
      {"xplane", "TensorFlow's and JAX's profiler: *.xplane.pb", &read_without_progress<read_xplane_trace>},
      {"onnxruntime", "ONNX Runtime's profile: onnxruntime_profile_*.json",
       &read_without_progress<read_onnxruntime_trace>},
      {"tensorflow", "TensorFlow 1: timeline JSON, RunMetadata", &read_without_progress<read_tensorflow_trace>,
       &read_tensorflow_traces},
      {"nsys", "Nsight Systems: nsys export --type sqlite", &read_without_progress<read_nsys_trace>},
  };
  return kTraceFormats;
}

const TraceFormat* find_trace_format(std::string_view name) {
  for (const TraceFormat& format : trace_formats()) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

}  // namespace joulemap::ingest
