// SPDX-License-Identifier: Apache-2.0
//
// SensorStatus: whether a sensor can be used on this machine, and if not, why and what would help. What `doctor`
// prints.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/channel.h"
#include "model/diagnostics.h"

namespace joulemap {

enum class SensorState {
  measured,   // it can be read
  estimated,  // nothing is read; a model stands in
  denied,     // it is there, but this user may not
  absent,     // this machine has none, or what it has gives nothing
};

// A channel that exists but gives no value from the start.
struct UnreadableChannel {
  Channel channel;
  std::string reason;  // one word: "denied", "garbage", "failed"
};

struct SensorStatus {
  std::string name;
  SensorState state = SensorState::absent;
  std::string reason;  // what was found; never empty
  std::string remedy;  // exact lines, one step each; empty when nothing is to be done
  std::vector<Channel> channels;
  std::vector<UnreadableChannel> unreadable;  // what is there and would be measured if it could be
  Diagnostics diagnostics;                    // what is odd about a sensor that can be used all the same
};

// Where we run, as far as it decides what can be measured.
struct HostKind {
  std::string machine;    // "bare metal", "virtual machine (KVM)"
  std::string container;  // "docker", "podman" ...; empty outside
  bool is_virtual = false;
};

struct DoctorResult {
  std::string version;
  HostKind host;
  std::vector<SensorStatus> sensors;
};

constexpr std::string_view to_string(SensorState state) {
  switch (state) {
    case SensorState::measured:
      return "measured";
    case SensorState::estimated:
      return "estimated";
    case SensorState::denied:
      return "denied";
    case SensorState::absent:
      return "absent";
  }
  return "absent";
}

}  // namespace joulemap
