// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/lost_kernels.h"

#include <cmath>
#include <map>
#include <string>

namespace joulemap::attribution {
namespace {

constexpr std::uint64_t kLongest_ns = std::uint64_t{1} << 62;

}  // namespace

Activity lost_kernel_activity(const Mark& mark, const ProcessActivity& names) {
  Activity lost_activity;
  std::int64_t end_ns = 0;
  if (mark.id == 0 || mark.id > kLongest_ns) return lost_activity;
  if (__builtin_add_overflow(mark.time_ns, static_cast<std::int64_t>(mark.id), &end_ns)) return lost_activity;
  std::map<std::string, std::uint32_t> queue_of;  // one queue for each GPU
  for (const auto& [id, queue] : names.kernel_queues) {
    const auto [device_queue, is_new] = queue_of.try_emplace(names.device_of_queue(id), id);
    if (!is_new) device_queue->second = std::min(device_queue->second, id);
  }
  if (queue_of.empty()) return lost_activity;
  lost_activity.begin_ns = mark.time_ns;
  lost_activity.end_ns = end_ns;
  lost_activity.classes = {{kLostKernelClassId, KernelKind::kernel, "lost kernels", {}, {}}};
  const auto time_ns = static_cast<std::int64_t>(mark.id);
  for (const auto& [device, queue] : queue_of) {
    lost_activity.kernel_tallies.push_back({kLostKernelClassId, queue, 0, 1, time_ns});
    lost_activity.kernels.push_back(
        {.start_ns = mark.time_ns, .end_ns = end_ns, .class_id = kLostKernelClassId, .queue = queue});
  }
  return lost_activity;
}

}  // namespace joulemap::attribution
