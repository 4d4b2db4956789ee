// SPDX-License-Identifier: Apache-2.0
#include "ingest/detect_format.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "formats/gzip.h"
#include "ingest/cprofile/cprofile.h"

namespace joulemap::ingest {
namespace {

// Bytes that are read. The text that identifies a profiler is near the start of its file; in a PyTorch trace it follows
// the properties of all GPUs.
constexpr std::size_t kStart_bytes = 256 << 10;

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

Result<std::string> start_of(const std::string& path) {
  Result<formats::MaybeGzipFile> file = formats::MaybeGzipFile::open(path);
  if (!file) return std::move(file).error();
  std::string text(kStart_bytes, '\0');
  const Result<std::size_t> size = file->read(text);
  if (!size) return size.error();
  text.resize(*size);
  return text;
}

// Whether the folder, such as TensorBoard's log folder, contains an XPlane trace at any depth.
bool has_xplane(const std::string& folder) {
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().string().ends_with(".xplane.pb")) return true;
  }
  return false;
}

std::string_view format_of_json(std::string_view text) {
  // ONNX Runtime writes an array of events with the categories Session and Node.
  if (text.front() == '[' && (contains(text, "\"Session\"") || contains(text, "\"Node\"")) &&
      contains(text, "\"cat\"")) {
    return "onnxruntime";
  }
  if (contains(text, "schemaVersion") || contains(text, "deviceProperties") || contains(text, "\"cpu_op\"") ||
      contains(text, "traceName")) {
    return "kineto";
  }
  // Names of TensorFlow's devices: "/job:localhost/replica:0/task:0/device:CPU:0 Compute".
  if (contains(text, "/job:") || contains(text, " Compute\"") || contains(text, "Op scheduling")) return "tensorflow";
  return contains(text, "traceEvents") ? "kineto" : "";
}

std::string_view format_of_protobuf(std::string_view path, std::string_view text) {
  if (path.ends_with(".xplane.pb") || contains(text, "/host:CPU") || contains(text, "/device:GPU")) return "xplane";
  return contains(text, "/job:") || contains(text, "/gpu:") || contains(text, "/cpu:") ? "tensorflow" : "";
}

std::string_view format_of_table(std::string_view text) {
  const std::string_view header = text.substr(0, text.find('\n'));
  if (contains(header, "time_unix_ns")) return "csv";
  // Columns of `nvidia-smi --query-gpu`, or the header of `nvidia-smi dmon`, which begins with "# gpu".
  return contains(header, "power.draw") || contains(header, "# gpu") || contains(header, "timestamp") ? "nvidia-smi"
                                                                                                      : "";
}

std::string_view format_of(std::string_view path, std::string_view text) {
  if (text.starts_with("SQLite format 3")) return "nsys";
  if (is_cprofile(text)) return kCprofileFormat;
  const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string_view::npos) return "";
  if (text[first] == '{' || text[first] == '[') return format_of_json(text.substr(first));
  if (text.front() == '\n' && path.ends_with(".pb")) return format_of_protobuf(path, text);
  if (const std::string_view table = format_of_table(text.substr(first)); !table.empty()) return table;
  return format_of_protobuf(path, text);
}

}  // namespace

Result<std::string> detect_format(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    if (has_xplane(path)) return std::string("xplane");
    return Error{ErrorCode::usage, fmt::format("{} is a folder without *.xplane.pb", joulemap::quoted(path)),
                 "name the trace file in it, or the format: joulemap import FORMAT INPUT"};
  }
  const Result<std::string> text = start_of(path);
  if (!text) return text.error();
  const std::string_view found = format_of(path, *text);
  if (!found.empty()) return std::string(found);
  return Error{ErrorCode::usage, fmt::format("the format of {} is not recognized", joulemap::quoted(path)),
               "name it: joulemap import FORMAT INPUT; joulemap help import lists the formats"};
}

}  // namespace joulemap::ingest
