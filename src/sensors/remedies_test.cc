// SPDX-License-Identifier: Apache-2.0
#include "sensors/remedies.h"

#include <gtest/gtest.h>

#include "sensors/backends.h"
#include "sensors/host_traits.h"
#include "support/sysroots.h"
#include "support/temporary_directory.h"

namespace joulemap::sensors {
namespace {

const HostTraits kBareMetalHost{"bare metal", "", false};
const HostTraits kDockerHost{"bare metal", "docker", false};

TEST(Remedies, RemediesNameTheProgramAndTheCapability) {
  const std::string remedy = remedy_for_denied_powercap(kBareMetalHost, "/opt/joulemap");
  EXPECT_NE(remedy.find("setcap cap_dac_read_search,cap_perfmon+ep /opt/joulemap"), std::string::npos);
  EXPECT_NE(remedy.find("0440"), std::string::npos);
  EXPECT_NE(remedy_for_denied_perf_event(kBareMetalHost, "").find("setcap cap_perfmon+ep"), std::string::npos);
}

TEST(Remedies, RemediesNeverOpenRaplToAllUsersWithoutNamingPlatypus) {
  for (const HostTraits& host : {kBareMetalHost, kDockerHost}) {
    EXPECT_NE(remedy_for_denied_powercap(host, "").find("PLATYPUS"), std::string::npos);
  }
  const std::string perf = remedy_for_denied_perf_event(kBareMetalHost, "");
  EXPECT_NE(perf.find("perf_event_paranoid"), std::string::npos);
  EXPECT_NE(perf.find("PLATYPUS"), std::string::npos);
  for (const char* forbidden : {"0444", "a+r", "o+r", "777"}) {
    EXPECT_EQ(remedy_for_denied_powercap(kBareMetalHost, "").find(forbidden), std::string::npos) << forbidden;
  }
}

TEST(Remedies, RemediesInAContainerNameItsCompleteOptions) {
  const std::string perf_event = "--user 0 --cap-add PERFMON";
  const std::string powercap = "--user 0 --security-opt systempaths=unconfined --security-opt apparmor=unconfined";
  EXPECT_NE(remedy_for_denied_perf_event(kDockerHost, "").find(perf_event), std::string::npos);
  EXPECT_NE(remedy_for_denied_powercap(kDockerHost, "").find(powercap), std::string::npos);
  EXPECT_EQ(remedy_for_absent_rapl(kDockerHost), "run the container with: " + perf_event + "\nor with: " + powercap);
}

TEST(HostTraits, DistinguishesVirtualMachinesFromBareMetal) {
  EXPECT_EQ(detect_host_traits(SystemRoot{sysroot("no-sensors")}).machine, "virtual machine (Amazon EC2 m5.large)");
  EXPECT_EQ(detect_host_traits(SystemRoot{sysroot("intel-2socket")}).machine, "bare metal");
}

TEST(HostTraits, RecognisesVirtualMachinesOfArmWhichHaveNoProcessorFlag) {
  const auto detect_machine = [](const std::string& file, const std::string& text, const std::string& product = "") {
    const TemporaryDirectory directory;
    directory.write("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n");
    directory.write(file, text);
    if (!product.empty()) directory.write("sys/class/dmi/id/product_name", product);
    return detect_host_traits(SystemRoot{directory.path()}).machine;
  };
  EXPECT_EQ(detect_machine("proc/device-tree/compatible", "linux,dummy-virt"), "virtual machine");
  EXPECT_EQ(detect_machine("sys/class/dmi/id/sys_vendor", "QEMU\n"), "virtual machine (QEMU)");
  EXPECT_EQ(detect_machine("sys/class/dmi/id/sys_vendor", "Amazon EC2\n", "m7g.large\n"),
            "virtual machine (Amazon EC2 m7g.large)");
  EXPECT_EQ(detect_machine("sys/class/dmi/id/sys_vendor", "Amazon EC2\n", "m7g.metal\n"), "bare metal");
  EXPECT_EQ(detect_machine("sys/class/dmi/id/sys_vendor", "Supermicro\n"), "bare metal");
}

TEST(HostTraits, RecognisesContainersAndWsl) {
  const TemporaryDirectory directory;
  directory.write("proc/1/cgroup", "0::/kubepods/burstable/pod1/abc\n");
  directory.write("proc/version", "Linux version 5.15.0-microsoft-standard-WSL2\n");
  const HostTraits host = detect_host_traits(SystemRoot{directory.path()});
  EXPECT_EQ(host.container, "kubernetes");
  EXPECT_EQ(host.machine, "virtual machine (WSL)");
}

TEST(Backends, BackendsAreChosenByNameInTheOrderOfPreference) {
  const auto chosen_backends = choose_backends("estimate, powercap");
  ASSERT_TRUE(chosen_backends.has_value());
  ASSERT_EQ(chosen_backends->size(), 2u);
  EXPECT_EQ((*chosen_backends)[0]->name, "powercap");
  EXPECT_EQ(choose_backends("")->size(), sensor_backends().size());
}

TEST(Backends, AnUnknownBackendIsRefusedAndTheOthersAreListed) {
  const auto chosen_backends = choose_backends("powercap,rapl");
  ASSERT_FALSE(chosen_backends.has_value());
  EXPECT_EQ(chosen_backends.error().code, ErrorCode::usage);
  std::size_t name_position = 0;  // position of the last name
  for (const SensorBackend& backend : sensor_backends()) {
    name_position = chosen_backends.error().remedy.find(backend.name, name_position);
    EXPECT_NE(name_position, std::string::npos) << backend.name;
  }
}

}  // namespace
}  // namespace joulemap::sensors
