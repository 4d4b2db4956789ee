// SPDX-License-Identifier: Apache-2.0
#include "capture/kernel_log.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "base/clock.h"
#include "capture/kernel_record_source.h"

namespace joulemap::capture {
namespace {

// Size of the ring of launches whose kernel record is outstanding: far more than the queues of a GPU hold.
constexpr std::size_t kLaunchRingSize = std::size_t{1} << 18;

// Budget of individually stored kernels (detail tokens): at first a quarter of an hour of fast training in full, then
// an occasional step. Unused tokens add up to kMaxSavedKernelRecordBudget. At two to three bytes a kernel, a day stays
// under 300 MB.
constexpr double kInitialKernelRecordBudget = 8e6;
constexpr double kKernelRecordBudgetPerSecond = 400;
constexpr double kMaxSavedKernelRecordBudget = 1e6;
constexpr double kProbingKernelRecordBudget = 4e6;
// The kernels of a step with a new shape (kernel sequence) are stored this many times regardless of the budget, up to
// kMaxKernelSequences shapes.
constexpr std::uint64_t kStoredStepsPerKernelSequence = 2;
constexpr std::size_t kMaxKernelSequences = 10'000;
// Limit of kernels of one step in memory; a longer step is written while it grows and has no shape.
constexpr std::size_t kMaxStepKernelsInMemory = 200'000;
// Added to the estimate of how long the GPU still runs kernels that were queued before tracing began.
constexpr std::int64_t kQueuedKernelMargin_ns = 2 * kNanosecondsPerMillisecond;
constexpr std::uint32_t kOutsideStepsKey = 0;  // key in open_steps_ of kernels outside of all steps
// Longest assumed delay between a kernel's execution and its tally: Capture waits 30 s for outstanding records.
constexpr std::int64_t kMaxRecordDelay_ns = 40 * kNanosecondsPerSecond;

std::uint64_t combine_hash(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15u + (hash << 6) + (hash >> 2);
  return hash * 0xBF58476D1CE4E5B9u;
}

std::uint64_t hash_kernel_sequence(const std::vector<Kernel>& kernels) {
  std::uint64_t hash = kernels.size() + 1;
  for (const Kernel& kernel : kernels) {
    hash = combine_hash(hash, std::uint64_t{kernel.class_id} << 32 | kernel.scope);
    hash = combine_hash(hash, kernel.queue);
  }
  return hash | 1;  // 0 means no shape
}

std::uint64_t hash_kernel_class(const KernelActivityRecord& kernel_record) {
  std::uint64_t hash =
      combine_hash(std::hash<std::string_view>()(kernel_record.name), static_cast<std::uint64_t>(kernel_record.kind));
  for (const std::uint32_t extent : kernel_record.grid) hash = combine_hash(hash, extent);
  for (const std::uint32_t extent : kernel_record.block) hash = combine_hash(hash, extent);
  return hash;
}

bool is_same_kernel_class(const KernelClass& kernel_class, const KernelActivityRecord& kernel_record) {
  return kernel_class.kind == kernel_record.kind && kernel_class.name == kernel_record.name &&
         kernel_class.grid == kernel_record.grid && kernel_class.block == kernel_record.block;
}

std::uint64_t pack_correlation_and_step(std::uint32_t correlation, std::uint32_t step) {
  return std::uint64_t{correlation} << 32 | step;
}

}  // namespace

std::int64_t tally_write_period_ns(std::int64_t run_ns) {
  return std::clamp(run_ns / 60, kNanosecondsPerSecond, 30 * kNanosecondsPerSecond);
}

KernelLog::KernelLog()
    : launch_ring_(std::make_unique<Launch[]>(kLaunchRingSize)), kernel_record_budget_(kInitialKernelRecordBudget) {}

void KernelLog::on_launch(std::uint32_t correlation, std::uint32_t scope, std::uint32_t step,
                          std::int64_t time_ns) noexcept {
  Launch& launch = launch_ring_[correlation % kLaunchRingSize];
  launch.scope.store(scope, std::memory_order_relaxed);
  launch.time_ns.store(time_ns, std::memory_order_relaxed);
  launch.correlation_and_step.store(pack_correlation_and_step(correlation, step), std::memory_order_release);
  launch_count_.fetch_add(1, std::memory_order_relaxed);
}

void KernelLog::on_synchronization(std::uint32_t scope, bool begins, std::int64_t time_ns) {
  const std::lock_guard lock(lock_);
  if (scope != kJoulemapScope) pending_scope_changes_.push_back({time_ns, scope, begins});
}

void KernelLog::set_tracing(std::int64_t time_ns, WaitTracing tracing, std::uint32_t scope) {
  const double usual_s = recent_step_load().gpu_s;  // GPU time of one step; twice as much is queued at most
  const std::lock_guard lock(lock_);
  gpu_wait_attribution_.set_tracing(time_ns, tracing,
                                    time_ns + kQueuedKernelMargin_ns + static_cast<std::int64_t>(2e9 * usual_s));
  if (tracing != WaitTracing::off) pending_scope_changes_.push_back({.time_ns = time_ns, .scope = scope});
}

void KernelLog::on_records_lost(std::int64_t since_ns, std::int64_t until_ns) {
  const std::lock_guard lock(lock_);
  gpu_wait_attribution_.add_lost_record_span(since_ns, until_ns);
}

void KernelLog::add_host_scope_changes(std::vector<HostScopeChange> edges) {
  const std::lock_guard lock(lock_);
  edges.insert(edges.end(), pending_scope_changes_.begin(), pending_scope_changes_.end());
  pending_scope_changes_.clear();
  std::ranges::stable_sort(edges, {}, &HostScopeChange::time_ns);
  gpu_wait_attribution_.add(edges);
}

void KernelLog::attribute_gpu_waits(std::int64_t settled_until_ns, std::int64_t end_ns) {
  const std::lock_guard lock(lock_);
  settled_until_ns == INT64_MAX ? gpu_wait_attribution_.finish(end_ns)
                                : gpu_wait_attribution_.resolve_idle_gaps(settled_until_ns);
}

void KernelLog::collect_gpu_waits(std::vector<Activity>& wait_activities) {
  const std::lock_guard lock(lock_);
  gpu_wait_attribution_.take_wait_activities(wait_activities);
}

void KernelLog::on_graph_node(std::uint64_t node, std::uint32_t scope) {
  const std::lock_guard lock(lock_);
  scope_by_graph_node_[node] = scope;
}

void KernelLog::on_graph_node_copied(std::uint64_t original_node, std::uint64_t copied_node) {
  const std::lock_guard lock(lock_);
  if (const auto original_node_scope = scope_by_graph_node_.find(original_node);
      original_node_scope != scope_by_graph_node_.end())
    scope_by_graph_node_[copied_node] = original_node_scope->second;
}

void KernelLog::set_device(std::uint32_t ordinal, std::string uuid) {
  const std::lock_guard lock(lock_);
  device_uuids_[ordinal] = std::move(uuid);
}

std::uint32_t KernelLog::find_or_add_kernel_class(const KernelActivityRecord& kernel_record) {
  const std::uint64_t hash = hash_kernel_class(kernel_record);
  const auto [class_range_begin, class_range_end] = kernel_class_ids_.equal_range(hash);
  for (auto class_entry = class_range_begin; class_entry != class_range_end; ++class_entry) {
    if (is_same_kernel_class(kernel_classes_[class_entry->second], kernel_record)) return class_entry->second;
  }
  const auto id = static_cast<std::uint32_t>(kernel_classes_.size());
  kernel_classes_.push_back(
      {id, kernel_record.kind, std::string(kernel_record.name), kernel_record.grid, kernel_record.block});
  kernel_class_ids_.emplace(hash, id);
  return id;
}

// Searched from the back: there are few queues, and the newest ones are used most.
std::uint32_t KernelLog::find_or_add_queue(const KernelActivityRecord& kernel_record) {
  const auto is_same_queue = [&](const KernelQueue& queue) {
    return queue.stream == kernel_record.stream && queue.context == kernel_record.context &&
           queue.ordinal == kernel_record.device_ordinal;
  };
  const auto matching_queue = std::find_if(kernel_queues_.rbegin(), kernel_queues_.rend(), is_same_queue);
  if (matching_queue != kernel_queues_.rend()) return matching_queue->id;
  const auto id = static_cast<std::uint32_t>(kernel_queues_.size());
  const auto device = device_uuids_.find(kernel_record.device_ordinal);
  kernel_queues_.push_back({id, device == device_uuids_.end() ? "" : device->second, kernel_record.device_ordinal,
                            kernel_record.context, kernel_record.stream});
  return id;
}

void KernelLog::on_kernel(const KernelActivityRecord& kernel_record) {
  const Launch& launch = launch_ring_[kernel_record.correlation % kLaunchRingSize];
  const std::uint64_t packed_correlation_and_step = launch.correlation_and_step.load(std::memory_order_acquire);
  const bool is_launch_found =
      packed_correlation_and_step >> 32 == kernel_record.correlation && packed_correlation_and_step != 0;
  const auto step = static_cast<std::uint32_t>(is_launch_found ? packed_correlation_and_step : 0);

  const std::lock_guard lock(lock_);
  std::uint32_t scope = is_launch_found ? launch.scope.load(std::memory_order_relaxed) : 0;
  if (scope == kJoulemapScope) return;
  // The scope in which a node was captured is more specific than the scope of its graph's launch.
  if (kernel_record.graph_node != 0) {
    if (const auto node_scope = scope_by_graph_node_.find(kernel_record.graph_node);
        node_scope != scope_by_graph_node_.end() && node_scope->second != 0)
      scope = node_scope->second;
  }
  ++counts_.kernel_count;
  const std::uint32_t class_id = find_or_add_kernel_class(kernel_record);
  if (!is_launch_found && scope == 0) {
    // Outside of steps, as in probing, kernels do not repeat the order of a step.
    const std::optional<std::uint32_t> inferred_scope =
        is_between_steps_ ? std::nullopt : scope_inference_.next_scope_of_class(class_id);
    ++(inferred_scope ? counts_.kernels_with_inferred_scope : counts_.kernels_without_scope);
    scope = inferred_scope.value_or(0);
  }
  Kernel kernel{kernel_record.start_ns,    kernel_record.end_ns, class_id, find_or_add_queue(kernel_record), scope,
                kernel_record.correlation, kernel_record.bytes};
  untallied_kernels_.push_back(kernel);
  gpu_wait_attribution_.add(
      {.device = kernel_record.device_ordinal,
       .queue = kernel.queue,
       .scope = scope,
       .launch_ns = is_launch_found ? std::optional(launch.time_ns.load(std::memory_order_relaxed)) : std::nullopt,
       .start_ns = kernel_record.start_ns,
       .end_ns = kernel_record.end_ns});
  // A kernel whose step is already closed is stored with those outside of all steps.
  open_steps_[step > last_written_step_ ? step : kOutsideStepsKey].kernels.push_back(kernel);
}

void KernelLog::end_last_step(std::int64_t time_ns) {
  if (open_steps_.empty() || open_steps_.rbegin()->second.has_ended) return;
  OpenStep& last_step = open_steps_.rbegin()->second;
  last_step.record.end_ns = time_ns;
  last_step.has_ended = true;
}

void KernelLog::end_step(std::int64_t time_ns) {
  const std::lock_guard lock(lock_);
  end_last_step(time_ns);
  is_between_steps_ = true;
}

void KernelLog::end_step_for_probing(std::int64_t time_ns) {
  end_step(time_ns);
  const std::lock_guard lock(lock_);
  kernel_record_budget_ = std::max(kernel_record_budget_, kProbingKernelRecordBudget);
}

void KernelLog::begin_step(std::uint32_t step, std::int64_t number, std::int64_t time_ns, bool is_traced) {
  const std::lock_guard lock(lock_);
  end_last_step(time_ns);
  is_between_steps_ = false;
  OpenStep& new_step = open_steps_[step];
  new_step.record.number = number;
  new_step.record.begin_ns = time_ns;
  new_step.record.is_traced = is_traced;
}

bool KernelLog::spend_kernel_record_budget(std::size_t kernels) {
  if (kernel_record_budget_ < static_cast<double>(kernels)) return false;
  kernel_record_budget_ -= static_cast<double>(kernels);
  return true;
}

// Moves the kernels that a step has so far into `activity` if the budget allows, else drops them; they count in its sums.
void KernelLog::write_step_part(OpenStep& step, Activity& activity) {
  const bool has_budget = spend_kernel_record_budget(step.kernels.size());
  if (has_budget) activity.kernels.insert(activity.kernels.end(), step.kernels.begin(), step.kernels.end());
  step.record.kernels += step.kernels.size();
  for (const Kernel& kernel : step.kernels) step.record.summed_kernel_ns += kernel.end_ns - kernel.start_ns;
  step.record.has_kernel_records = has_budget && (step.record.has_kernel_records || !step.is_partly_written);
  step.is_partly_written = true;
  step.kernels.clear();
}

void KernelLog::write_ended_step(OpenStep& step, Activity& activity) {
  std::sort(step.kernels.begin(), step.kernels.end(), [](const Kernel& a, const Kernel& b) {
    return std::tie(a.start_ns, a.queue, a.correlation) < std::tie(b.start_ns, b.queue, b.correlation);
  });
  StepRecord& record = step.record;
  bool is_kept_despite_budget = false;
  if (!step.is_partly_written && !step.kernels.empty()) {
    record.kernel_sequence_hash = hash_kernel_sequence(step.kernels);
    if (record.is_traced) scope_inference_.store_step(step.kernels);
    is_kept_despite_budget =
        step_counts_by_kernel_sequence_.size() < kMaxKernelSequences &&
        step_counts_by_kernel_sequence_[record.kernel_sequence_hash]++ < kStoredStepsPerKernelSequence;
  }
  if (is_kept_despite_budget)
    kernel_record_budget_ = std::max(kernel_record_budget_, static_cast<double>(step.kernels.size()));
  if (!step.kernels.empty()) write_step_part(step, activity);
  if (!record.is_traced || record.end_ns <= record.begin_ns) return;
  recent_step_loads_[step_load_count_++ % recent_step_loads_.size()] = {
      .kernels = static_cast<double>(record.kernels),
      .step_s = seconds(record.end_ns - record.begin_ns),
      .gpu_s = seconds(record.summed_kernel_ns)};
}

void KernelLog::collect_steps(Activity& activity, std::int64_t settled_until_ns) {
  const bool is_last = settled_until_ns == INT64_MAX;
  for (auto entry = open_steps_.begin(); entry != open_steps_.end();) {
    auto& [serial, step] = *entry;
    if (is_last && !step.has_ended) step.record.end_ns = activity.end_ns;
    if (is_last || (step.has_ended && step.record.end_ns < settled_until_ns)) {
      write_ended_step(step, activity);
      if (serial != kOutsideStepsKey) activity.steps.push_back(step.record);
      last_written_step_ = std::max(last_written_step_, serial);
      entry = open_steps_.erase(entry);
      continue;
    }
    if (serial == kOutsideStepsKey || step.kernels.size() > kMaxStepKernelsInMemory) write_step_part(step, activity);
    if (serial != kOutsideStepsKey) return;
    ++entry;
  }
}

// CUPTI keeps a buffer for each thread that launches kernels, and delivers them at different times. Kernels that started
// later than others that are still to come are left for the next tallies: the intervals of tallies would overlap, and a
// GPU would seem to be busy twice in some of the time and idle in the rest.
void KernelLog::tally_settled_kernels(std::int64_t settled_until_ns) {
  if (settled_until_ns == tallied_until_ns_ && settled_until_ns != INT64_MAX) return;
  tallied_until_ns_ = settled_until_ns;
  const auto first_settled = std::partition(untallied_kernels_.begin(), untallied_kernels_.end(),
                                            [&](const Kernel& kernel) { return kernel.start_ns >= settled_until_ns; });
  for (auto kernel = first_settled; kernel != untallied_kernels_.end(); ++kernel) {
    const TallyKey key{kernel->class_id, kernel->queue, kernel->scope};
    KernelTally& tally =
        kernel_tallies_.try_emplace(key, KernelTally{key.class_id, key.queue, key.scope, 0, 0}).first->second;
    ++tally.count;
    tally.time_ns += kernel->end_ns - kernel->start_ns;
    first_tallied_start_ns_ = std::min(first_tallied_start_ns_, kernel->start_ns);
    last_tallied_end_ns_ = std::max(last_tallied_end_ns_, kernel->end_ns);
  }
  untallied_kernels_.erase(first_settled, untallied_kernels_.end());
}

void KernelLog::collect_kernel_activity(Activity& activity, std::int64_t settled_until_ns, bool includes_tallies) {
  const std::lock_guard lock(lock_);
  if (budget_refill_time_ns_ != 0 && kernel_record_budget_ < kMaxSavedKernelRecordBudget) {
    kernel_record_budget_ = std::min(
        kernel_record_budget_ + kKernelRecordBudgetPerSecond * seconds(activity.end_ns - budget_refill_time_ns_),
        kMaxSavedKernelRecordBudget);
  }
  budget_refill_time_ns_ = activity.end_ns;
  collect_steps(activity, settled_until_ns);
  tally_settled_kernels(settled_until_ns);
  for (; collected_class_count_ < kernel_classes_.size(); ++collected_class_count_)
    activity.classes.push_back(kernel_classes_[collected_class_count_]);
  for (; collected_queue_count_ < kernel_queues_.size(); ++collected_queue_count_)
    activity.queues.push_back(kernel_queues_[collected_queue_count_]);
  if (!includes_tallies) return;
  for (const auto& [key, tally] : kernel_tallies_) activity.kernel_tallies.push_back(tally);
  std::sort(activity.kernel_tallies.begin(), activity.kernel_tallies.end(),
            [](const KernelTally& a, const KernelTally& b) {
              return std::tie(a.scope, a.class_id, a.queue) < std::tie(b.scope, b.class_id, b.queue);
            });
  if (!kernel_tallies_.empty()) {
    // Clamp: a clock jump must not stretch one second of tallies over an hour.
    activity.begin_ns = std::clamp(first_tallied_start_ns_, activity.begin_ns - kMaxRecordDelay_ns, activity.end_ns);
    activity.end_ns = std::clamp(last_tallied_end_ns_, activity.begin_ns, activity.end_ns);
  }
  first_tallied_start_ns_ = INT64_MAX;
  last_tallied_end_ns_ = INT64_MIN;
  kernel_tallies_.clear();
}

void KernelLog::collect_names(Activity& activity) const {
  const std::lock_guard lock(lock_);
  activity.classes = kernel_classes_;
  activity.queues = kernel_queues_;
}

KernelLog::Counts KernelLog::counts() const {
  const std::lock_guard lock(lock_);
  Counts counts = counts_;
  counts.launch_count = launch_count_.load(std::memory_order_relaxed);
  return counts;
}

KernelLog::StepLoadSummary KernelLog::recent_step_load() const {
  const std::lock_guard lock(lock_);
  const std::size_t count = std::min<std::uint64_t>(step_load_count_, recent_step_loads_.size());
  if (count == 0) return {};
  const auto median = [&](double StepLoad::*amount) {
    std::array<double, std::tuple_size_v<decltype(recent_step_loads_)>> step_amounts{};
    std::transform(recent_step_loads_.begin(), recent_step_loads_.begin() + count, step_amounts.begin(),
                   std::mem_fn(amount));
    std::nth_element(step_amounts.begin(), step_amounts.begin() + count / 2, step_amounts.begin() + count);
    return step_amounts[count / 2];
  };
  return {.traced_steps = step_load_count_,
          .kernels_per_step = median(&StepLoad::kernels),
          .step_s = median(&StepLoad::step_s),
          .gpu_s = median(&StepLoad::gpu_s)};
}

}  // namespace joulemap::capture
