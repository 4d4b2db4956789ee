// SPDX-License-Identifier: Apache-2.0
//
// A recording of a training that never was, the same whenever it is made: steps of equal kernels, forward, backward and
// optimizer, epochs, a loss that falls, gauges, a layer whose name is markup. For tests of the page and its bench.
//
//   build/bin/joulemap-made-recording FILE STEPS LAYERS KERNELS_A_LAYER
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "base/clock.h"
#include "recording/recording_writer.h"

namespace {

using namespace joulemap;

constexpr std::int64_t kBegin_ns = 1'000'000'000;
constexpr std::int64_t kKernel_ns = 40'000;
constexpr std::int64_t kPause_ns = 3'000'000;  // between steps
constexpr std::uint32_t kKernelClassCount = 8;
constexpr double kIdle_w = 100;
constexpr double kCpu_w = 60;
constexpr std::uint32_t kOptimizerScope = 4;
constexpr std::uint32_t kFirstLayerScope = 10;
constexpr std::int64_t kTick_ns = 20 * kNanosecondsPerMillisecond;

enum ChannelNumber : std::uint32_t { gpu, package, dram, temperature, utilization, clock_rate, memory, machine };

Channel make_channel(std::string name, std::string sensor, std::string domain, DomainClass domain_class, double scale) {
  Channel channel;
  channel.name = std::move(name);
  channel.sensor = std::move(sensor);
  channel.domain = std::move(domain);
  channel.domain_class = domain_class;
  channel.scale = scale;
  if (domain_class == DomainClass::gpu) channel.device = "GPU-1";
  return channel;
}

Channel make_gauge(std::string name, Quantity quantity, double scale) {
  Channel channel = make_channel(std::move(name), "nvml", "gpu0", DomainClass::gpu, scale);
  channel.kind = ChannelKind::gauge;
  channel.quantity = quantity;
  return channel;
}

std::vector<Channel> channels() {
  Channel machine_time = make_channel(std::string(kMachineCpuTimeChannel), "proc", "", DomainClass::other, 1e-9);
  machine_time.quantity = Quantity::cpu_time;
  Channel counter = make_channel("gpu0-energy", "nvml", "gpu0", DomainClass::gpu, 1e-3);
  counter.refresh_s = 0.02;
  return {counter,
          make_channel("package-0", "powercap", "package-0", DomainClass::cpu, 1e-6),
          make_channel("dram-0", "powercap", "dram-0", DomainClass::memory, 1e-6),
          make_gauge("gpu0-temperature", Quantity::temperature, 1),
          make_gauge("gpu0-utilization", Quantity::utilization, 1),
          make_gauge("gpu0-sm-clock", Quantity::clock, 1),
          make_gauge("gpu0-memory-used", Quantity::memory, 1),
          machine_time};
}

// Reads all sensors every 20 ms while time goes on.
class SensorClock {
 public:
  explicit SensorClock(recording::RecordingWriter& writer) : writer_(writer) {}

  std::int64_t now_ns() const { return now_ns_; }
  void pass(std::int64_t length_ns, double watts) {
    while (length_ns > 0) {
      const std::int64_t part_ns = std::min(length_ns, next_tick_ns_ - now_ns_);
      now_ns_ += part_ns;
      length_ns -= part_ns;
      joules_ += watts * seconds(part_ns);
      if (now_ns_ == next_tick_ns_) read(watts);
    }
  }

 private:
  void put(ChannelNumber channel, double raw_value) {
    writer_.add(Sample{channel, {static_cast<std::uint64_t>(raw_value), now_ns_, now_ns_ + 1000, ReadCode::ok}});
  }
  void read(double watts) {
    const double elapsed_s = seconds(now_ns_ - kBegin_ns);
    put(gpu, 1e6 + joules_ * 1e3);
    put(package, elapsed_s * kCpu_w * 1e6);
    put(dram, elapsed_s * 10 * 1e6);
    put(temperature, 40 + 20 * (1 - std::exp(-elapsed_s)));
    put(utilization, watts > kIdle_w ? 97 : 0);
    put(clock_rate, 1980);
    put(memory, 11e9);
    put(machine, elapsed_s * 1.3e9);
    next_tick_ns_ += kTick_ns;
    if (writer_.pending_item_count() > 4000 && !writer_.flush()) fmt::print(stderr, "could not be written\n");
  }

  recording::RecordingWriter& writer_;
  std::int64_t now_ns_ = kBegin_ns;
  std::int64_t next_tick_ns_ = kBegin_ns + kTick_ns;
  double joules_ = 0;
};

struct Shape {
  std::uint32_t steps;
  std::uint32_t layers;
  std::uint32_t kernels;  // of each layer and pass
};

std::string layer_name(std::uint32_t layer) {
  if (layer == 0) return "</script><b>bold</b>";
  return fmt::format("blocks.{}.conv{}", layer / 4, layer % 4);
}

// Of each layer: its module forward and backward, with an operation in each.
Activity make_scopes_and_classes(const Shape& shape) {
  Activity names;
  names.scopes = {{1, 0, ScopeKind::mode, "train"},
                  {2, 1, ScopeKind::phase, "forward"},
                  {3, 1, ScopeKind::phase, "backward"},
                  {kOptimizerScope, 1, ScopeKind::phase, "optimizer"}};
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    for (std::uint32_t pass = 0; pass < 2; ++pass) {
      const std::uint32_t id = kFirstLayerScope + 4 * layer + 2 * pass;
      names.scopes.push_back({id, 2 + pass, ScopeKind::module, layer_name(layer)});
      names.scopes.push_back({id + 1, id, ScopeKind::op, pass == 0 ? "aten::conv2d" : "ConvolutionBackward0"});
    }
  }
  for (std::uint32_t id = 0; id < kKernelClassCount; ++id) {
    names.classes.push_back({id, KernelKind::kernel, fmt::format("gemm_{}x{}", 32 << id, 64), {id + 1, 1, 1}, {}});
  }
  names.queues = {{0, "GPU-1", 0, 1, 7}};
  return names;
}

class TrainingWriter {
 public:
  TrainingWriter(recording::RecordingWriter& writer, const Shape& shape)
      : writer_(writer), shape_(shape), clock_(writer) {}

  std::int64_t run() {
    writer_.add(Mark{kBegin_ns, MarkKind::command_begin, 0, 0, {}});
    Activity activity = make_scopes_and_classes(shape_);
    activity.begin_ns = kBegin_ns;
    clock_.pass(200 * kNanosecondsPerMillisecond, kIdle_w);
    for (std::uint32_t step = 0; step < shape_.steps; ++step) {
      const std::uint32_t epoch_steps = std::max(shape_.steps / 4, 1u);
      if (step % epoch_steps == 0) writer_.add(Mark{clock_.now_ns(), MarkKind::epoch, step / epoch_steps, 1, {}});
      write_step(activity, step);
      if (clock_.now_ns() - activity.begin_ns > kNanosecondsPerSecond) write(activity);
    }
    write(activity);
    clock_.pass(100 * kNanosecondsPerMillisecond, kIdle_w);
    writer_.add(Mark{clock_.now_ns(), MarkKind::command_end, 0, 0, {}});
    return clock_.now_ns();
  }

 private:
  void launch(Activity& activity, std::uint32_t scope, std::uint32_t class_id, std::int64_t length_ns) {
    const std::int64_t start_ns = clock_.now_ns();
    clock_.pass(length_ns, 300 + 50.0 * class_id);
    activity.kernels.push_back({start_ns, clock_.now_ns(), class_id, 0, scope, ++correlation_, 0});
    KernelTally& tally = tallies_[{scope, class_id}];
    tally.class_id = class_id;
    tally.scope = scope;
    ++tally.count;
    tally.time_ns += length_ns;
  }

  void write_step(Activity& activity, std::uint32_t step) {
    StepRecord record{.number = step,
                      .begin_ns = clock_.now_ns(),
                      .kernel_sequence_hash = 1,
                      .is_traced = true,
                      .has_kernel_records = true};
    const std::size_t previous_kernel_count = activity.kernels.size();
    writer_.add(Mark{clock_.now_ns(), MarkKind::step, step, 1, {}});
    for (std::uint32_t i = 0; i < 2 * shape_.layers; ++i) {
      const bool is_backward = i >= shape_.layers;
      const std::uint32_t layer = is_backward ? 2 * shape_.layers - 1 - i : i;
      const std::uint32_t scope = kFirstLayerScope + 4 * layer + (is_backward ? 3 : 1);
      for (std::uint32_t k = 0; k < shape_.kernels; ++k) {
        const std::int64_t jitter_ns = 512 * static_cast<std::int64_t>((step * 7 + layer * 3 + k) % 9);
        launch(activity, scope, (layer + k) % kKernelClassCount, kKernel_ns * (is_backward ? 2 : 1) + jitter_ns);
      }
      ScopeTally& host = scopes_[scope - 1];
      ++host.count;
      host.wall_ns += kKernel_ns;
      host.cpu_ns += kKernel_ns;
    }
    launch(activity, kOptimizerScope, 1, 4 * kKernel_ns);
    const double loss = 0.1 + 2.4 * std::exp(-4.0 * step / shape_.steps) + 0.01 * (step * 37 % 11);
    writer_.add(Metric{clock_.now_ns(), step, "loss", loss});
    writer_.add(Metric{clock_.now_ns(), step, "samples", 32});
    // The GPU waits for the optimizer's host code.
    clock_.pass(kPause_ns, kIdle_w);
    waits_.scope = kOptimizerScope;
    ++waits_.count;
    waits_.time_ns += kPause_ns;
    record.end_ns = clock_.now_ns();
    record.kernels = activity.kernels.size() - previous_kernel_count;
    activity.steps.push_back(record);
  }

  void write(Activity& activity) {
    activity.end_ns = clock_.now_ns();
    for (auto& [key, tally] : tallies_) activity.kernel_tallies.push_back(tally);
    for (auto& [scope, tally] : scopes_) {
      tally.scope = scope;
      activity.scope_tallies.push_back(tally);
    }
    if (waits_.count > 0) activity.waits.push_back(std::exchange(waits_, {}));
    tallies_.clear();
    scopes_.clear();
    writer_.add(std::exchange(activity, Activity{.begin_ns = clock_.now_ns()}));
    if (!writer_.flush()) fmt::print(stderr, "could not be written\n");
  }

  recording::RecordingWriter& writer_;
  Shape shape_;
  SensorClock clock_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, KernelTally> tallies_;
  std::map<std::uint32_t, ScopeTally> scopes_;
  WaitTally waits_;
  std::uint32_t correlation_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return fmt::print(stderr, "joulemap-made-recording FILE STEPS LAYERS KERNELS_A_LAYER\n"), 2;
  const auto number = [&](int argument_index) {
    return static_cast<std::uint32_t>(std::strtoul(argv[argument_index], nullptr, 10));
  };
  const RecordingSource source{std::string(32, '7'),
                               "made-up",
                               "boot-1",
                               7,
                               kBegin_ns,
                               "recorder",
                               {"python", "train.py", "--name", "<made & \"up\">"},
                               "0.1.0"};
  Result<recording::RecordingWriter> writer = recording::RecordingWriter::create(argv[1], source);
  if (!writer) return fmt::print(stderr, "{}\n", writer.error().message), 1;
  writer->set_channels(channels());
  writer->add(ClockPair{kBegin_ns, 1'790'000'000'000'000'000});
  writer->add(EnvironmentFact{"cpus_online", "0-7"});
  TrainingWriter(*writer, {number(2), number(3), number(4)}).run();
  RecordingEnd end;
  end.exit_code = 0;
  end.overhead_cpu_s = 0.05;
  end.diagnostics.add({"made_up", 1, "nothing of this ever ran: <i>it was made up</i>", "do not believe it"});
  return writer->finish(end) ? 0 : 1;
}
