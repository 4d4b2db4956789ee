// SPDX-License-Identifier: Apache-2.0
#include "scopes/host_lateness_tracker.h"

#include <algorithm>
#include <cmath>

namespace joulemap {

void HostLatenessTracker::change_lateness(std::uint32_t scope, std::int64_t lateness_change_ns) {
  if (scope >= scopes_.size()) scopes_.resize(scope + std::size_t{1});
  ScopeLateness& scope_lateness = scopes_[scope];
  scope_lateness.lateness_since_wait_ns += lateness_change_ns;
  if (!scope_lateness.is_active) active_scope_ids_.push_back(scope);
  if (!scope_lateness.is_changed) changed_scope_ids_.push_back(scope);
  scope_lateness.is_active = scope_lateness.is_changed = true;
}

bool HostLatenessTracker::add_wait(std::int64_t wait_ns) {
  for (const std::uint32_t id : changed_scope_ids_) {
    ScopeLateness& scope = scopes_[id];
    total_lateness_ns_ -= std::max(scope.lateness_at_wait_ns, std::int64_t{0});
    scope.lateness_at_wait_ns += scope.lateness_since_wait_ns;
    total_lateness_ns_ += std::max(scope.lateness_at_wait_ns, std::int64_t{0});
    scope.lateness_since_wait_ns = 0;
    scope.is_changed = false;
  }
  changed_scope_ids_.clear();
  if (period_wait_ns_ + wait_ns > total_lateness_ns_) return false;
  period_wait_ns_ += wait_ns;
  return true;
}

void HostLatenessTracker::divide_waits_by_lateness() {
  for (const std::uint32_t id : active_scope_ids_) {
    ScopeLateness& scope = scopes_[id];
    if (period_wait_ns_ > 0 && scope.lateness_at_wait_ns > 0) {
      const double share = static_cast<double>(scope.lateness_at_wait_ns) / static_cast<double>(total_lateness_ns_);
      scope.charged_ns += share * static_cast<double>(period_wait_ns_);
    }
    scope.lateness_at_wait_ns = 0;
  }
  total_lateness_ns_ = period_wait_ns_ = 0;
}

void HostLatenessTracker::end_period() {
  divide_waits_by_lateness();
  for (const std::uint32_t id : changed_scope_ids_) scopes_[id].lateness_since_wait_ns /= 2;
  drop_inactive_scopes();
}

void HostLatenessTracker::reset_period() {
  divide_waits_by_lateness();
  for (const std::uint32_t id : changed_scope_ids_) {
    scopes_[id].lateness_since_wait_ns = 0;
    scopes_[id].is_changed = false;
  }
  changed_scope_ids_.clear();
  drop_inactive_scopes();
}

// Removes ids from the lists, because a program may have a million scopes, of which few are late at a time. Less than
// half a nanosecond of charge stays with the scope.
void HostLatenessTracker::drop_inactive_scopes() {
  std::erase_if(changed_scope_ids_, [&](std::uint32_t id) {
    scopes_[id].is_changed = scopes_[id].lateness_since_wait_ns != 0;
    return !scopes_[id].is_changed;
  });
  std::erase_if(active_scope_ids_, [&](std::uint32_t id) {
    ScopeLateness& scope = scopes_[id];
    scope.is_active = scope.is_changed || scope.charged_ns >= 0.5;
    return !scope.is_active;
  });
}

std::vector<HostLatenessTracker::WaitCharge> HostLatenessTracker::take_wait_charges() {
  end_period();
  std::vector<WaitCharge> charges;
  for (const std::uint32_t id : active_scope_ids_) {
    const double rounded_charge_ns = std::round(scopes_[id].charged_ns);  // the fraction stays with the scope
    if (rounded_charge_ns < 1) continue;
    charges.push_back({id, static_cast<std::int64_t>(rounded_charge_ns)});
    scopes_[id].charged_ns -= rounded_charge_ns;
  }
  drop_inactive_scopes();
  return charges;
}

}  // namespace joulemap
