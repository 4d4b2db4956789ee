// SPDX-License-Identifier: Apache-2.0
//
// SensorStatus: whether a sensor is usable on this machine, and if not, the reason and the remedy. `doctor` prints it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/channel.h"
#include "model/diagnostics.h"

namespace joulemap {

enum class SensorState {
  measured,   // readable
  estimated,  // the sensor is a model that estimates energy
  denied,     // present, but this user lacks permission
  absent,     // not present, or present without values
};

// A channel that exists but could not be read when the sensor was opened.
struct UnreadableChannel {
  Channel channel;
  std::string reason;  // one word: "denied", "garbage", "failed"
};

struct SensorStatus {
  std::string name;
  SensorState state = SensorState::absent;
  std::string reason;  // why it is in this state; never empty
  std::string remedy;  // exact commands, one per line; empty when none is needed
  std::vector<Channel> channels;
  std::vector<UnreadableChannel> unreadable;
  Diagnostics diagnostics;  // problems of a sensor that is usable nevertheless
};

// Host properties that decide what can be measured.
struct HostTraits {
  std::string machine;    // "bare metal", "virtual machine (KVM)"
  std::string container;  // "docker", "podman" ...; empty outside a container
  bool is_virtual = false;
};

struct DoctorResult {
  std::string version;
  HostTraits host;
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
