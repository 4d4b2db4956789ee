// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the C interface with sequences of calls: a byte of the input selects the call, the bytes after it are its
// arguments. Sensors are read from a temporary folder that imitates /sys with one RAPL counter. Structures are
// allocated with exactly the size that they declare, so the sanitizer detects accesses beyond it. A model of the
// windows gives the expected result of calls.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "joulemap/joulemap.h"

namespace {

constexpr std::size_t kMaxCalls = 64;
constexpr std::size_t kMaxWindowWaits = 1;  // calls of jm_window_wait() per input; each may take 0.3 s

class FuzzedArguments {
 public:
  FuzzedArguments(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  template <class T>
  T next() {
    T value{};
    const std::size_t taken = std::min(sizeof value, size_);
    std::memcpy(&value, data_, taken);
    data_ += taken;
    size_ -= taken;
    return value;
  }
  const char* name() {
    static constexpr std::array<const char*, 5> kNames = {nullptr, "", "window", "\xff\xfe", "a/b\nc"};
    return kNames[next<std::uint8_t>() % kNames.size()];
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

// A temporary folder with the /sys files of one RAPL counter, for the lifetime of the process.
class FakePowercapFolder {
 public:
  FakePowercapFolder() : path_((std::filesystem::temp_directory_path() / "joulemap-fuzz-XXXXXX").string()) {
    JOULEMAP_CHECK(::mkdtemp(path_.data()) != nullptr, "no temporary folder");
    const std::string zone = path_ + "/sys/class/powercap/intel-rapl:0";
    std::filesystem::create_directories(zone);
    std::ofstream(zone + "/name") << "package-0\n";
    std::ofstream(zone + "/energy_uj") << "1000000\n";
    std::ofstream(zone + "/max_energy_range_uj") << "262143328850\n";
  }
  ~FakePowercapFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  FakePowercapFolder(const FakePowercapFolder&) = delete;
  FakePowercapFolder& operator=(const FakePowercapFolder&) = delete;
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

const char* machine() {
  static const FakePowercapFolder made;
  return made.path();
}

// Memory of a structure of the C interface that declares `size` bytes: not a byte more, but at least its size field.
class SizedStructMemory {
 public:
  explicit SizedStructMemory(std::size_t size)
      : bytes_(std::max(size, sizeof size)), memory_(new unsigned char[bytes_]) {
    std::fill_n(memory_.get(), bytes_, std::uint8_t{0});
    std::memcpy(memory_.get(), &size, sizeof size);
  }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(memory_.get());
  }
  // Writes a member at this offset if the memory contains it.
  template <class T>
  void put(std::size_t offset, T value) {
    if (offset + sizeof value <= bytes_) std::memcpy(memory_.get() + offset, &value, sizeof value);
  }

 private:
  std::size_t bytes_;
  std::unique_ptr<unsigned char[]> memory_;
};

std::size_t choose_struct_size(FuzzedArguments& arguments, std::size_t usual) {
  const auto choice = arguments.next<std::uint8_t>();
  return choice < 128 ? usual : arguments.next<std::uint16_t>() % 5000;
}

SizedStructMemory make_next_options(FuzzedArguments& arguments) {
  static constexpr std::array<const char*, 5> kSensors = {"powercap", "powercap", nullptr, "none-such", ",,"};
  const std::size_t size = choose_struct_size(arguments, sizeof(jm_options));
  SizedStructMemory options(size);
  options.put(offsetof(jm_options, sensors), kSensors[arguments.next<std::uint8_t>() % kSensors.size()]);
  options.put(offsetof(jm_options, sysroot), machine());
  const auto choice = arguments.next<std::uint8_t>();
  options.put(offsetof(jm_options, period_s), choice < 128 ? 0.001 * choice : arguments.next<double>());
  if (size > sizeof(jm_options)) options.put(size - 1, arguments.next<std::uint8_t>());
  return options;
}

// Makes the calls that the input describes, and keeps a model of the state: the windows that are not released.
class CallSequence {
 public:
  explicit CallSequence(FuzzedArguments arguments) : arguments_(arguments) {}

  void run() {
    for (std::size_t calls = 0; calls < kMaxCalls && !arguments_.empty(); ++calls) make_next_call();
    for (const Window& window : windows_) jm_window_free(window.id);
    jm_stop();
  }

 private:
  struct Window {
    jm_window id = 0;
    bool is_open = true;
  };

  void make_next_call() {
    switch (arguments_.next<std::uint8_t>() % 12) {
      case 0:
        return start();
      case 1:
        JOULEMAP_CHECK(jm_stop() == JM_OK, "a stop that fails");
        return;
      case 2:
        return begin();
      case 3:
        return end();
      case 4:
        return release();
      case 5:
        return query_window(&jm_window_peek);
      case 6:
        return wait_count_++ < kMaxWindowWaits ? query_window(&jm_window_wait) : query_window(&jm_window_peek);
      case 7:
        return row<jm_domain>(&jm_window_domain);
      case 8:
        return row<jm_diagnostic>(&jm_window_diagnostic);
      case 9:
        return call_doctor();
      case 10:
        return call_with_unknown_window();
      default:
        return make_marks();
    }
  }

  void start() {
    SizedStructMemory options = make_next_options(arguments_);
    const int code = jm_start(options.as<jm_options>());
    JOULEMAP_CHECK(code == JM_OK || (code == JM_USAGE && *jm_last_error() != '\0'), "a start without a reason");
  }

  void begin() {
    // Without jm_start(), the first jm_begin() would open the sensors of the real machine.
    SizedStructMemory options(sizeof(jm_options));
    options.put(offsetof(jm_options, sensors), "powercap");
    options.put(offsetof(jm_options, sysroot), machine());
    jm_start(options.as<jm_options>());
    const jm_window window = jm_begin(arguments_.name());
    JOULEMAP_CHECK(window != 0, "no window");
    windows_.push_back({window});
  }

  Window* choose_window() {
    return windows_.empty() ? nullptr : &windows_[arguments_.next<std::uint8_t>() % windows_.size()];
  }

  void end() {
    Window* const window = choose_window();
    if (window == nullptr) return;
    JOULEMAP_CHECK(jm_end(window->id) == (window->is_open ? JM_OK : JM_NOT_FOUND), "an end that is not the first");
    window->is_open = false;
  }

  void release() {
    const Window* const window = choose_window();
    if (window == nullptr) return;
    const jm_window id = window->id;
    jm_window_free(id);
    windows_.erase(windows_.begin() + (window - windows_.data()));
    JOULEMAP_CHECK(jm_end(id) == JM_NOT_FOUND, "a window that is not forgotten");
  }

  void query_window(int (*function)(jm_window, jm_energy*)) {
    const Window* const window = choose_window();
    if (window == nullptr) return;
    const std::size_t size = choose_struct_size(arguments_, sizeof(jm_energy));
    SizedStructMemory energy(size);
    const int code = function(window->id, energy.as<jm_energy>());
    if (code != JM_OK) {
      JOULEMAP_CHECK(*jm_last_error() != '\0', "no reason");
      return;
    }
    JOULEMAP_CHECK(function != &jm_window_wait || !window->is_open, "an open window was waited for");
    std::size_t filled_size = 0;
    std::memcpy(&filled_size, energy.as<char>(), sizeof filled_size);
    JOULEMAP_CHECK(filled_size == std::min(size, sizeof(jm_energy)), "more was filled than there is room");
    if (filled_size != sizeof(jm_energy)) return;
    const jm_energy& output = *energy.as<jm_energy>();
    JOULEMAP_CHECK(output.elapsed_s >= 0 && output.end_ns >= output.begin_ns, "a time that runs back");
    JOULEMAP_CHECK((output.provenance == JM_UNKNOWN) == std::isnan(output.joules), "joules of no provenance");
    JOULEMAP_CHECK(std::memchr(output.reason, 0, sizeof output.reason) != nullptr, "a text without an end");
  }

  template <class T>
  void row(int (*function)(std::size_t, T*)) {
    const std::size_t size = choose_struct_size(arguments_, sizeof(T));
    SizedStructMemory output(size);
    const std::size_t index = arguments_.next<std::uint8_t>();
    const int code = function(index % 128 == 127 ? SIZE_MAX : index % 4, output.template as<T>());
    JOULEMAP_CHECK(code == JM_OK || code == JM_USAGE, "another code");
    JOULEMAP_CHECK(code == JM_USAGE || size >= sizeof size, "a structure without a size was filled");
  }

  void call_doctor() {
    SizedStructMemory options = make_next_options(arguments_);
    char* text = nullptr;
    const int code = jm_doctor_json(options.as<jm_options>(), &text);
    JOULEMAP_CHECK((code == JM_OK) == (text != nullptr), "a text with an error, or none without");
    jm_text_free(text);
  }

  void call_with_unknown_window() {
    const auto window = arguments_.next<jm_window>();
    const bool is_ours =
        std::any_of(windows_.begin(), windows_.end(), [&](const Window& ours) { return ours.id == window; });
    if (is_ours) return;
    jm_window_free(window);
    JOULEMAP_CHECK(jm_end(window) == JM_NOT_FOUND, "a window that nobody began");
    SizedStructMemory energy(sizeof(jm_energy));
    JOULEMAP_CHECK(jm_window_peek(window, energy.as<jm_energy>()) == JM_NOT_FOUND, "energy of a window that never was");
  }

  void make_marks() {
    const auto number = arguments_.next<std::int64_t>();
    JOULEMAP_CHECK(jm_region_push(arguments_.name()) == JM_OK && jm_log(arguments_.name(), std::nan("")) == JM_OK,
                   "marks");
    JOULEMAP_CHECK(jm_step(&number) == (number < 0 ? JM_USAGE : JM_OK), "steps have numbers from 0 on");
    JOULEMAP_CHECK(jm_epoch(nullptr) == JM_OK && jm_region_pop() == JM_OK, "marks");
  }

  FuzzedArguments arguments_;
  std::vector<Window> windows_;
  std::size_t wait_count_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  CallSequence(FuzzedArguments(data, size)).run();
  return 0;
}
