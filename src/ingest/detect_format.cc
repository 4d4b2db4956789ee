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
constexpr std::size_t kInspectedStart_bytes = 256 << 10;

bool contains_substring(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Result<std::string> read_format_sample(const std::string& path) {
  Result<formats::MaybeGzipFile> file = formats::MaybeGzipFile::open(path);
  if (!file) return std::move(file).error();
  std::string text(kInspectedStart_bytes, '\0');
  const Result<std::size_t> size = file->read(text);
  if (!size) return size.error();
  text.resize(*size);
  return text;
}

// Whether the folder, such as TensorBoard's log folder, contains an XPlane trace at any depth.
bool contains_xplane_file(const std::string& folder) {
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().string().ends_with(".xplane.pb")) return true;
  }
  return false;
}

std::string_view detect_json_format(std::string_view text) {
  // ONNX Runtime writes an array of events with the categories Session and Node.
  if (text.front() == '[' && (contains_substring(text, "\"Session\"") || contains_substring(text, "\"Node\"")) &&
      contains_substring(text, "\"cat\"")) {
    return "onnxruntime";
  }
  if (contains_substring(text, "schemaVersion") || contains_substring(text, "deviceProperties") ||
      contains_substring(text, "\"cpu_op\"") || contains_substring(text, "traceName")) {
    return "kineto";
  }
  // Names of TensorFlow's devices: "/job:localhost/replica:0/task:0/device:CPU:0 Compute".
  if (contains_substring(text, "/job:") || contains_substring(text, " Compute\"") ||
      contains_substring(text, "Op scheduling"))
    return "tensorflow";
  return contains_substring(text, "traceEvents") ? "kineto" : "";
}

std::string_view detect_protobuf_format(std::string_view path, std::string_view text) {
  if (path.ends_with(".xplane.pb") || contains_substring(text, "/host:CPU") || contains_substring(text, "/device:GPU"))
    return "xplane";
  return contains_substring(text, "/job:") || contains_substring(text, "/gpu:") || contains_substring(text, "/cpu:")
             ? "tensorflow"
             : "";
}

std::string_view detect_table_format(std::string_view text) {
  const std::string_view header = text.substr(0, text.find('\n'));
  if (contains_substring(header, "time_unix_ns")) return "csv";
  // Columns of `nvidia-smi --query-gpu`, or the header of `nvidia-smi dmon`, which begins with "# gpu".
  return contains_substring(header, "power.draw") || contains_substring(header, "# gpu") ||
                 contains_substring(header, "timestamp")
             ? "nvidia-smi"
             : "";
}

std::string_view detect_format_of_text(std::string_view path, std::string_view text) {
  if (text.starts_with("SQLite format 3")) return "nsys";
  if (is_cprofile(text)) return kCprofileFormat;
  const std::size_t content_offset = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (content_offset == std::string_view::npos) return "";
  if (text[content_offset] == '{' || text[content_offset] == '[')
    return detect_json_format(text.substr(content_offset));
  if (text.front() == '\n' && path.ends_with(".pb")) return detect_protobuf_format(path, text);
  if (const std::string_view table = detect_table_format(text.substr(content_offset)); !table.empty()) return table;
  return detect_protobuf_format(path, text);
}

}  // namespace

Result<std::string> detect_format(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    if (contains_xplane_file(path)) return std::string("xplane");
    return Error{ErrorCode::usage, fmt::format("{} is a folder without *.xplane.pb", joulemap::quoted(path)),
                 "name the trace file in it, or the format: joulemap import FORMAT INPUT"};
  }
  const Result<std::string> text = read_format_sample(path);
  if (!text) return text.error();
  const std::string_view format_name = detect_format_of_text(path, *text);
  if (!format_name.empty()) return std::string(format_name);
  return Error{ErrorCode::usage, fmt::format("the format of {} is not recognized", joulemap::quoted(path)),
               "name it: joulemap import FORMAT INPUT; joulemap help import lists the formats"};
}

}  // namespace joulemap::ingest
