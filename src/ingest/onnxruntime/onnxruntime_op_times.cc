// SPDX-License-Identifier: Apache-2.0
#include "ingest/onnxruntime/onnxruntime_op_times.h"

#include <map>
#include <string>

#include "formats/json_objects.h"
#include "scopes/tensor_text.h"

namespace joulemap::ingest {
namespace {

constexpr std::string_view kKernelTimeSuffix = "_kernel_time";
constexpr std::int64_t kNanosecondsPerMicrosecond = 1000;
constexpr std::int64_t kMaxNodeTime_us =
    3'600 * std::int64_t{1'000'000};  // limit of one node; larger values are invalid

using OpTimeByScope = std::map<scopes::OpScope, OpTime>;

void add_op_time(OpTimeByScope& sums, const scopes::OpScope& scope, std::uint64_t count, std::int64_t time_ns) {
  OpTime& share = sums[scope];
  share.scope = scope;
  share.count += count;
  share.time_ns += time_ns;
}

// Sums the times of nodes over all runs but the first. An event is written when its node or run ends, so the event of a
// run comes after those of its nodes.
class OnnxNodeTimeSums {
 public:
  void add_event(const formats::JsonFields& event) {
    const std::string_view name = event.text("name");
    if (event.text("cat") == "Session" && name == "model_run") finish_current_run();
    if (event.text("cat") != "Node" || !name.ends_with(kKernelTimeSuffix)) return;
    const std::int64_t time_us = event.integer("dur").value_or(-1);
    if (time_us < 0 || time_us > kMaxNodeTime_us) return;
    scopes::OpScope scope =
        scopes::scope_of_onnx_node(name.substr(0, name.size() - kKernelTimeSuffix.size()), event.text("args.op_name"));
    scope.tensors = scopes::parse_onnxruntime_tensors(event.array("args.input_type_shape"));
    add_op_time(current_run_sums_, scope, 1, time_us * kNanosecondsPerMicrosecond);
  }

  std::vector<OpTime> finish() {
    finish_current_run();
    std::vector<OpTime> shares;
    for (const auto& [scope, share] : later_runs_sums_.empty() ? first_run_sums_ : later_runs_sums_)
      shares.push_back(share);
    return shares;
  }

 private:
  void finish_current_run() {
    if (first_run_sums_.empty()) {
      first_run_sums_ = std::move(current_run_sums_);
    } else {
      for (const auto& [scope, share] : current_run_sums_)
        add_op_time(later_runs_sums_, scope, share.count, share.time_ns);
    }
    current_run_sums_.clear();
  }

  OpTimeByScope current_run_sums_, first_run_sums_, later_runs_sums_;
};

}  // namespace

OpTimes read_onnxruntime_op_times(std::string_view json) {
  OpTimes result;
  OnnxNodeTimeSums runs;
  const formats::JsonObjectsResult parse_result =
      formats::for_each_json_object(json, [&](const formats::JsonFields& event) { runs.add_event(event); });
  if (!parse_result.is_complete())
    result.diagnostics.add({"damaged_trace", 1, "an ONNX Runtime profile is damaged", ""});
  result.op_times = runs.finish();
  return result;
}

}  // namespace joulemap::ingest
