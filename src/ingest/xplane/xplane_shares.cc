// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_shares.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "ingest/xplane/hlo_program.h"
#include "ingest/xplane/xplane_reader.h"

namespace joulemap::ingest {
namespace {

constexpr std::int64_t kPicosecondsPerNanosecond = 1000;
constexpr std::int64_t kLongest_ns = 3'600 * std::int64_t{1'000'000'000};  // of one operation
constexpr std::string_view kDataThreads = "tf_data_";
constexpr std::string_view kDataStage = "Iterator::";
constexpr std::string_view kInput = "dataloader";
constexpr std::string_view kInputLayer = "tf.data";

// Stages that only hand on what another thread makes: their time is waiting.
bool is_waiting(std::string_view stage) { return stage == "Prefetch" || stage == "Root" || stage == "Model"; }

struct Operation {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t place = 0;
  std::int64_t producer = 0;  // what ties it to the event that tells its end; 0: none
};

class Sharing : public XPlaneVisitor {
 public:
  explicit Sharing(const ScopeTable& scopes) : scopes_(scopes) {}

  void on_program(std::string_view name, std::string_view hlo_proto) override { protos_[name] = hlo_proto; }
  bool on_plane(const XPlane& plane) override { return plane.kind == XPlaneKind::host; }

  bool on_line(const XLine& line) override {
    end_line();
    feeds_ = line.name.starts_with(kDataThreads);
    return true;
  }

  void on_event(const XEvent& event) override {
    if (event.name.starts_with("end: ")) {
      if (const auto consumer = event.integer("_c")) ends_ns_[*consumer] = end_of(event);
      return;
    }
    const std::optional<std::uint32_t> place = place_of(event);
    if (!place) return;
    operations_.push_back({event.begin_unix_ns, end_of(event), *place, event.integer("_p").value_or(0)});
  }

  std::vector<OpShare> finish() {
    end_line();
    for (const auto& [producer, started] : started_) {
      const auto end = ends_ns_.find(producer);
      std::int64_t late_ns = 0;
      if (end == ends_ns_.end() || __builtin_sub_overflow(end->second, started.end_ns, &late_ns)) continue;
      if (late_ns > 0 && late_ns < kLongest_ns) shares_[started.place].time_ns += late_ns;
    }
    return std::move(shares_);
  }

 private:
  static std::int64_t end_of(const XEvent& event) {
    std::int64_t end_ns = 0;
    const bool overflows =
        __builtin_add_overflow(event.begin_unix_ns, event.duration_ps / kPicosecondsPerNanosecond, &end_ns);
    return overflows ? event.begin_unix_ns : end_ns;
  }

  // Nothing when it is no operation.
  std::optional<std::uint32_t> place_of(const XEvent& event) {
    if (const std::string_view instruction = event.text("hlo_op"); !instruction.empty()) {
      const std::string_view module = event.text("hlo_module");
      const std::string program =
          std::string(module) + "(" + std::to_string(event.integer("program_id").value_or(0)) + ")";
      return known(program + "/" + std::string(instruction), [&] { return xla_place(program, module, instruction); });
    }
    if (event.name.starts_with(kDataStage)) {
      const std::string_view stage = event.name.substr(event.name.rfind(':') + 1);
      if (is_waiting(stage)) return std::nullopt;
      return known(std::string(event.name), [&] { return input_place(stage); });
    }
    const std::size_t colon = event.name.rfind(':');
    const bool has_type = colon != std::string_view::npos && !event.display_name.empty() &&
                          event.name.substr(colon + 1) == event.display_name;
    if (!has_type) return std::nullopt;
    const bool feeds = feeds_;
    return known((feeds ? "input/" : "") + std::string(event.name), [&] {
      return feeds ? input_place(event.display_name)
                   : place_of_tensorflow_op(event.name.substr(0, colon), event.display_name, scopes_);
    });
  }

  static OpPlace input_place(std::string_view op) {
    return {std::string(kInput), std::string(kInputLayer), std::string(op)};
  }

  // TensorFlow's names have gone through XLA as they were; JAX's have functions in them: jit(step).
  OpPlace xla_place(const std::string& name, std::string_view module, std::string_view instruction) {
    const HloProgram& program = program_named(name, module);
    const HloOrigin* const origin = program.origin_of(instruction);
    if (origin == nullptr) return {{}, {}, std::string(instruction.substr(0, instruction.find('.')))};
    const bool is_jax = origin->op_name.find('(') != std::string_view::npos;
    return is_jax ? place_of_xla_op(origin->op_name, program.trains())
                  : place_of_tensorflow_op(origin->op_name, origin->op_type, scopes_);
  }

  // Programs are read when one of their instructions is met. Some versions do not number them.
  const HloProgram& program_named(const std::string& name, std::string_view module) {
    const auto [slot, is_new] = programs_.try_emplace(name);
    if (!is_new) return slot->second;
    auto proto = protos_.find(name);
    if (proto == protos_.end()) {
      proto = std::find_if(protos_.begin(), protos_.end(), [&](const auto& other) {
        return other.first == module ||
               (other.first.starts_with(module) && other.first.substr(module.size()).starts_with("("));
      });
    }
    if (proto != protos_.end()) slot->second = HloProgram::read(proto->second);
    return slot->second;
  }

  template <class Find>
  std::uint32_t known(std::string key, Find find) {
    const auto [slot, is_new] = known_.try_emplace(std::move(key));
    if (!is_new) return slot->second;
    const auto [number, is_new_place] = numbers_.try_emplace(find(), static_cast<std::uint32_t>(shares_.size()));
    if (is_new_place) shares_.push_back({number->first});
    return slot->second = number->second;
  }

  // Events of a thread nest: what lies within another operation is taken off it.
  void end_line() {
    std::sort(operations_.begin(), operations_.end(), [](const Operation& a, const Operation& b) {
      return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
    });
    std::vector<const Operation*> around;
    for (const Operation& operation : operations_) {
      const std::int64_t time_ns = operation.end_ns - operation.begin_ns;
      while (!around.empty() && around.back()->end_ns < operation.end_ns) around.pop_back();
      if (!around.empty()) shares_[around.back()->place].time_ns -= time_ns;
      around.push_back(&operation);
      shares_[operation.place].time_ns += time_ns;
      ++shares_[operation.place].count;
      if (operation.producer != 0) started_.insert_or_assign(operation.producer, operation);
    }
    operations_.clear();
  }

  const ScopeTable& scopes_;
  std::map<std::string_view, std::string_view> protos_;
  std::unordered_map<std::string, HloProgram> programs_;
  bool feeds_ = false;                 // the present thread belongs to tf.data
  std::vector<Operation> operations_;  // of the present line
  std::unordered_map<std::int64_t, Operation> started_;
  std::unordered_map<std::int64_t, std::int64_t> ends_ns_;
  std::unordered_map<std::string, std::uint32_t> known_;
  std::map<OpPlace, std::uint32_t> numbers_;
  std::vector<OpShare> shares_;
};

}  // namespace

TraceShares shares_of_xplane(std::string_view bytes, const ScopeTable& scopes) {
  Sharing sharing(scopes);
  TraceShares result;
  result.diagnostics = read_xplane(bytes, sharing);
  result.shares = sharing.finish();
  std::erase_if(result.shares, [](const OpShare& share) { return share.time_ns <= 0; });
  return result;
}

}  // namespace joulemap::ingest
