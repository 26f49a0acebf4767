#include "plinth/hardware/probe/probe.h"

#include <boost/json.hpp>

#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/probe/fake_root.h"
#include "plinth/hardware/probe/format.h"

namespace plinth::probe {
namespace {

namespace json = boost::json;
using ::plinth::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

// A 16-CPU machine whose process is in cgroup v2 group /job.
class ProbeTest : public ::testing::Test {
 protected:
  ProbeTest() {
    root_.WriteMachine(16);
    root_.Write("/proc/self/mountinfo", "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    root_.Write("/proc/self/cgroup", "0::/job\n");
  }
  void Limit(const std::string& file, const std::string& text) {
    root_.Write("/sys/fs/cgroup/job/" + file, text);
  }
  absl::StatusOr<MachineReport> Run(ProbeOptions options = {}) {
    options.root = root_.path();
    return Probe(options);
  }

  FakeRoot root_;
};

TEST_F(ProbeTest, WithoutLimitsEverythingIsUsable) {
  ASSERT_OK_AND_ASSIGN(const MachineReport report, Run());
  EXPECT_EQ(report.topology.sockets, 1);
  EXPECT_EQ(report.topology.cores, 16);
  EXPECT_EQ(report.cpu.model, "Imaginary 9000");
  EXPECT_THAT(report.cpu.features, ElementsAre("avx2", "fma"));
  EXPECT_EQ(report.usable.cpu_count, 16);
  EXPECT_EQ(report.usable.limited_by, "nothing");
  EXPECT_THAT(report.usable.memory_bytes, Optional(uint64_t{64} << 30));
}

TEST_F(ProbeTest, QuotaIsRoundedDownToAtLeastOne) {
  const std::pair<const char*, int> cases[] = {{"400000 100000", 4},   {"765000 100000", 7},
                                               {"99000 100000", 1},    {"1000 100000", 1},
                                               {"1599999 100000", 15}, {"9900000 100000", 16}};
  for (const auto& [quota, cpus] : cases) {
    Limit("cpu.max", quota);
    ASSERT_OK_AND_ASSIGN(const MachineReport report, Run());
    EXPECT_EQ(report.usable.cpu_count, cpus) << quota;
    EXPECT_EQ(report.usable.cpus.size(), 16u) << quota;
  }
}

TEST_F(ProbeTest, CpusetAndAffinityIntersect) {
  Limit("cpuset.cpus.effective", "0-3");
  ASSERT_OK_AND_ASSIGN(MachineReport report, Run());
  EXPECT_EQ(report.usable.cpu_count, 4);
  EXPECT_EQ(report.usable.limited_by, "cpuset");
  ASSERT_OK_AND_ASSIGN(report, Run({.affinity = CpuList{2, 3, 4}}));
  EXPECT_THAT(report.usable.cpus, ElementsAre(2, 3));
  EXPECT_EQ(report.usable.limited_by, "affinity");
  Limit("cpu.max", "150000 100000");
  ASSERT_OK_AND_ASSIGN(report, Run());
  EXPECT_EQ(report.usable.cpu_count, 1);
  EXPECT_EQ(report.usable.limited_by, "CPU quota 1.5");
}

TEST_F(ProbeTest, NoCpuLeftIsExplained) {
  Limit("cpuset.cpus.effective", "0-3");
  EXPECT_THAT(Run({.affinity = CpuList{8}}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "no CPU is left to use: online \"0-15\", cpuset \"0-3\", affinity \"8\""));
}

TEST_F(ProbeTest, MemoryLimitCapsBothFigures) {
  Limit("memory.max", "1048576");
  ASSERT_OK_AND_ASSIGN(const MachineReport report, Run());
  EXPECT_THAT(report.usable.memory_bytes, Optional(1048576u));
  EXPECT_THAT(report.usable.memory_available_bytes, Optional(1048576u));
  EXPECT_THAT(report.memory.total_bytes, Optional(uint64_t{64} << 30));
}

TEST_F(ProbeTest, ErrorsNameTheFile) {
  Limit("cpu.max", "?");
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("job/cpu.max")));
  Limit("cpu.max", "max 100000");
  root_.Write("/proc/meminfo", "MemTotal: many kB\n");
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/proc/meminfo")));
  EXPECT_THAT(Probe({.root = "/no/such/root"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/root")));
}

TEST_F(ProbeTest, NicsAndTheirGaps) {
  root_.Write("/sys/class/net/bonding_masters", "");
  root_.Write("/sys/class/net/eth0/operstate", "up\n");
  root_.Write("/sys/class/net/eth0/speed", "100000\n");
  root_.Write("/sys/class/net/eth0/mtu", "9000\n");
  root_.Write("/sys/class/net/eth0/device/numa_node", "1\n");
  root_.Link("/sys/class/net/eth0/device/driver", "../../../bus/pci/drivers/mlx5_core");
  root_.Write("/sys/class/net/eth1/operstate", "down\n");
  root_.Write("/sys/class/net/eth1/speed", "-1\n");
  root_.Write("/sys/class/net/lo/operstate", "unknown\n");
  ASSERT_OK_AND_ASSIGN(const MachineReport report, Run());
  ASSERT_EQ(report.nics.size(), 3u);
  EXPECT_EQ(report.nics[0].name, "eth0");
  EXPECT_EQ(report.nics[0].driver, "mlx5_core");
  EXPECT_THAT(report.nics[0].speed_mbps, Optional(100000));
  EXPECT_THAT(report.nics[0].numa_node, Optional(1));
  EXPECT_FALSE(report.nics[0].is_virtual);
  EXPECT_EQ(report.nics[1].speed_mbps, std::nullopt);
  EXPECT_TRUE(report.nics[2].is_virtual);
}

TEST_F(ProbeTest, PciAcceleratorsOnly) {
  const auto device = [&](const std::string& address, const std::string& vendor,
                          const std::string& pci_class) {
    const std::string directory = "/sys/bus/pci/devices/" + address;
    root_.Write(directory + "/vendor", vendor);
    root_.Write(directory + "/device", "0x2335\n");
    root_.Write(directory + "/class", pci_class);
    root_.Write(directory + "/numa_node", "-1\n");
  };
  device("0000:01:00.0", "0x10de\n", "0x030200\n");  // NVIDIA 3D controller
  device("0000:02:00.0", "0x15b3\n", "0x020700\n");  // a network card
  device("0000:03:00.0", "0x1a03\n", "0x030000\n");  // server management VGA
  device("0000:04:00.0", "0xbeef\n", "0x120000\n");  // unknown maker, but an accelerator
  device("0000:05:00.0", "0x10de\n", "0x040300\n");  // the audio function of a GPU
  device("0000:06:00.0", "broken\n", "0x120000\n");
  ASSERT_OK_AND_ASSIGN(const MachineReport report, Run());
  ASSERT_EQ(report.accelerators.size(), 2u);
  EXPECT_EQ(report.accelerators[0].address, "0000:01:00.0");
  EXPECT_EQ(report.accelerators[0].vendor, "NVIDIA");
  EXPECT_EQ(report.accelerators[0].numa_node, std::nullopt);
  EXPECT_EQ(report.accelerators[1].vendor_id, 0xbeefu);
}

TEST_F(ProbeTest, VisibleDevicesComeFromTheTable) {
  const NvidiaTable table{
      .driver_version = "570.1", .source = "fake", .gpus = {{.uuid = "GPU-a"}, {.uuid = "GPU-b"}}};
  ASSERT_OK_AND_ASSIGN(MachineReport report, Run({.nvidia = table, .cuda_visible_devices = "1"}));
  EXPECT_THAT(report.visible, ElementsAre(VisibleDevice{.gpu = 1}));
  EXPECT_THAT(ToTable(report), HasSubstr("GPU 1 (CUDA_VISIBLE_DEVICES=\"1\")"));
  // libcuda's list is the result of the variable: applying it again would be wrong.
  NvidiaTable filtered = table;
  filtered.already_filtered = true;
  ASSERT_OK_AND_ASSIGN(report, Run({.nvidia = filtered, .cuda_visible_devices = "1"}));
  EXPECT_EQ(report.visible.size(), 2u);
}

// All keys of an object and of the first elements of its arrays, as "a", "a.b", "c[].d".
void CollectKeys(const json::value& value, const std::string& path, std::vector<std::string>* out) {
  if (value.is_object()) {
    for (const auto& [key, child] : value.get_object()) {
      const std::string name = (path.empty() ? "" : path + ".") + std::string(key);
      out->push_back(name);
      CollectKeys(child, name, out);
    }
  } else if (value.is_array() && !value.get_array().empty()) {
    CollectKeys(value.get_array()[0], path + "[]", out);
  }
}

// Programs read these names: within plinth.machine.v1 they may be added to, never changed.
TEST(Json, SchemaIsStable) {
  MachineReport report;
  report.topology.caches = {{}};
  report.topology.numa_nodes = {{}};
  report.memory.huge_pages = {{}};
  report.nics = {{}};
  report.accelerators = {{}};
  report.nvidia.gpus = {{.mig_devices = {{}}}};
  report.visible = {{}};
  std::vector<std::string> keys;
  CollectKeys(json::parse(ToJson(report)), "", &keys);
  std::string joined;
  for (const std::string& key : keys) joined += key + " ";
  EXPECT_EQ(
      joined,
      "schema hostname kernel cpu cpu.model cpu.sockets cpu.cores cpu.threads cpu.online "
      "cpu.features caches caches[].level caches[].kind caches[].bytes caches[].line_bytes "
      "caches[].count caches[].cpus_sharing numa numa[].id numa[].memory_bytes numa[].cpus memory "
      "memory.total_bytes memory.available_bytes memory.transparent_huge_pages memory.huge_pages "
      "memory.huge_pages[].page_bytes memory.huge_pages[].total memory.huge_pages[].free cgroup "
      "cgroup.version cgroup.cpu_quota cgroup.cpuset cgroup.memory_bytes affinity usable "
      "usable.cpus usable.cpu_count usable.limited_by usable.memory_bytes "
      "usable.memory_available_bytes nics nics[].name nics[].state nics[].virtual nics[].driver "
      "nics[].mac nics[].speed_mbps nics[].mtu_bytes nics[].numa_node nics[].addresses "
      "accelerators accelerators[].address accelerators[].vendor_id accelerators[].device_id "
      "accelerators[].class accelerators[].vendor accelerators[].driver accelerators[].link_speed "
      "accelerators[].link_lanes accelerators[].numa_node nvidia nvidia.driver_version "
      "nvidia.source nvidia.problem nvidia.cuda_visible_devices nvidia.gpus nvidia.gpus[].uuid "
      "nvidia.gpus[].name nvidia.gpus[].pci_address nvidia.gpus[].memory_bytes "
      "nvidia.gpus[].compute_capability nvidia.gpus[].mig_enabled nvidia.gpus[].mig_devices "
      "nvidia.gpus[].mig_devices[].uuid nvidia.gpus[].mig_devices[].gpu_instance "
      "nvidia.gpus[].mig_devices[].compute_instance nvidia.gpus[].mig_devices[].memory_bytes "
      "nvidia.visible nvidia.visible[].gpu nvidia.visible[].mig ");
}

TEST(Json, KeepsValues) {
  MachineReport report;
  report.cgroup.cpu_quota = 7.65;
  report.usable.cpus = {0, 1, 2, 8};
  report.memory.total_bytes = uint64_t{1} << 62;
  const json::value parsed = json::parse(ToJson(report));
  EXPECT_EQ(parsed.at("cgroup").at("cpu_quota"), 7.65);
  EXPECT_EQ(parsed.at("usable").at("cpus"), "0-2,8");
  EXPECT_EQ(parsed.at("memory").at("total_bytes"), uint64_t{1} << 62);
  EXPECT_TRUE(parsed.at("memory").at("available_bytes").is_null());
}

TEST(Format, Bytes) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(49152), "48 KiB");
  EXPECT_EQ(FormatBytes(25276502016), "23.5 GiB");
  EXPECT_EQ(FormatBytes(~uint64_t{0}), "16 EiB");
}

// The live machine: whatever it is, the parts must fit together.
TEST(Probe, LiveMachine) {
  ASSERT_OK_AND_ASSIGN(const MachineReport report, Probe({}));
  EXPECT_GE(report.topology.cores, 1);
  EXPECT_GE(report.usable.cpu_count, 1);
  EXPECT_LE(report.usable.cpu_count, static_cast<int>(report.usable.cpus.size()));
  EXPECT_LE(report.usable.memory_bytes, report.memory.total_bytes);
  EXPECT_THAT(ToTable(report), HasSubstr("Usable here"));
}

}  // namespace
}  // namespace plinth::probe
