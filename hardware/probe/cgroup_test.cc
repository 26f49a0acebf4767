#include "plinth/hardware/probe/cgroup.h"

#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/hardware/probe/fake_root.h"

namespace plinth::probe {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr char kV2Mount[] = "30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
constexpr char kV1Mounts[] =
    "22 27 0:21 / /proc rw - proc proc rw\n"
    "31 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "32 30 0:29 / /sys/fs/cgroup/memory rw shared:10 - cgroup cgroup rw,memory\n"
    "33 30 0:30 / /sys/fs/cgroup/cpuset rw shared:11 - cgroup cgroup rw,cpuset\n";
constexpr char kV1Groups[] =
    "4:memory:/job\n3:cpuset:/job\n2:cpu,cpuacct:/job\n1:name=systemd:/x\n";

class CgroupTest : public ::testing::Test {
 protected:
  void V2(const std::string& path, const std::string& mounts = kV2Mount) {
    root_.Write("/proc/self/mountinfo", mounts);
    root_.Write("/proc/self/cgroup", "0::" + path + "\n");
  }
  void V1(const std::string& groups = kV1Groups, const std::string& mounts = kV1Mounts) {
    root_.Write("/proc/self/mountinfo", mounts);
    root_.Write("/proc/self/cgroup", groups);
  }
  absl::StatusOr<CgroupLimits> Limits() const { return ReadCgroupLimits(RootFs(root_.path())); }
  void ExpectMalformed(const std::string& file, const std::string& text) {
    root_.Write(file, text);
    EXPECT_THAT(Limits(), StatusIs(absl::StatusCode::kInvalidArgument,
                                   AllOf(HasSubstr("expected"), HasSubstr("got"))))
        << file << ": " << text;
    root_.Remove(file);
  }

  FakeRoot root_;
};

TEST_F(CgroupTest, V2QuotaMemoryAndCpuset) {
  V2("/job");
  root_.Write("/sys/fs/cgroup/job/cpu.max", "400000 100000\n");
  root_.Write("/sys/fs/cgroup/job/memory.max", "1073741824\n");
  root_.Write("/sys/fs/cgroup/job/cpuset.cpus.effective", "0-3\n");
  ASSERT_OK_AND_ASSIGN(const CgroupLimits limits, Limits());
  EXPECT_EQ(limits.version, "v2");
  EXPECT_THAT(limits.cpu_quota, Optional(4.0));
  EXPECT_THAT(limits.memory_bytes, Optional(1073741824u));
  EXPECT_THAT(limits.cpuset, Optional(ElementsAre(0, 1, 2, 3)));
}

TEST_F(CgroupTest, V1QuotaMemoryAndCpuset) {
  V1();
  root_.Write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "765000\n");
  root_.Write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  root_.Write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2147483648\n");
  root_.Write("/sys/fs/cgroup/cpuset/job/cpuset.cpus", "2,5-6\n");
  ASSERT_OK_AND_ASSIGN(const CgroupLimits limits, Limits());
  EXPECT_EQ(limits.version, "v1");
  EXPECT_THAT(limits.cpu_quota, Optional(7.65));
  EXPECT_THAT(limits.memory_bytes, Optional(2147483648u));
  EXPECT_THAT(limits.cpuset, Optional(ElementsAre(2, 5, 6)));
}

TEST_F(CgroupTest, WordsForUnlimitedAreNoLimit) {
  V2("/job");
  root_.Write("/sys/fs/cgroup/job/cpu.max", "max 100000\n");
  root_.Write("/sys/fs/cgroup/job/memory.max", "max\n");
  root_.Write("/sys/fs/cgroup/job/cpuset.cpus", "\n");
  ASSERT_OK_AND_ASSIGN(CgroupLimits limits, Limits());
  EXPECT_EQ(limits.cpu_quota, std::nullopt);
  EXPECT_EQ(limits.memory_bytes, std::nullopt);
  EXPECT_EQ(limits.cpuset, std::nullopt);
  V1();
  root_.Write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  root_.Write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  ASSERT_OK_AND_ASSIGN(limits, Limits());
  EXPECT_EQ(limits.cpu_quota, std::nullopt);
  EXPECT_EQ(limits.memory_bytes, std::nullopt);
}

// Every visible ancestor counts, whichever level is the tight one.
TEST_F(CgroupTest, NestedLimitsTakeTheTightest) {
  V2("/a/b/c");
  const std::string top = "/sys/fs/cgroup";
  root_.Write(top + "/a/cpu.max", "200000 100000");
  root_.Write(top + "/a/b/cpu.max", "800000 100000");
  root_.Write(top + "/a/b/c/cpu.max", "max 100000");
  root_.Write(top + "/a/memory.max", "max");
  root_.Write(top + "/a/b/memory.max", "4096");
  root_.Write(top + "/a/b/c/memory.max", "8192");
  root_.Write(top + "/a/cpuset.cpus.effective", "0-7");
  root_.Write(top + "/a/b/c/cpuset.cpus.effective", "4-5");
  ASSERT_OK_AND_ASSIGN(CgroupLimits limits, Limits());
  EXPECT_THAT(limits.cpu_quota, Optional(2.0));
  EXPECT_THAT(limits.memory_bytes, Optional(4096u));
  EXPECT_THAT(limits.cpuset, Optional(ElementsAre(4, 5)));
  root_.Write(top + "/a/b/c/memory.high", "1024");  // throttles below the hard limit
  ASSERT_OK_AND_ASSIGN(limits, Limits());
  EXPECT_THAT(limits.memory_bytes, Optional(1024u));
}

TEST_F(CgroupTest, V1NestedLimitsTakeTheTightest) {
  V1("2:cpu,cpuacct:/pod/job\n");
  const std::string top = "/sys/fs/cgroup/cpu,cpuacct/pod";
  root_.Write(top + "/cpu.cfs_quota_us", "150000");
  root_.Write(top + "/cpu.cfs_period_us", "50000");
  root_.Write(top + "/job/cpu.cfs_quota_us", "-1");
  root_.Write(top + "/job/cpu.cfs_period_us", "100000");
  ASSERT_OK_AND_ASSIGN(const CgroupLimits limits, Limits());
  EXPECT_THAT(limits.cpu_quota, Optional(3.0));
}

// Inside a cgroup namespace the process is in "/", and the mount shows its group at the top.
TEST_F(CgroupTest, CgroupNamespace) {
  V2("/");
  root_.Write("/sys/fs/cgroup/cpu.max", "300000 100000");
  ASSERT_OK_AND_ASSIGN(const CgroupLimits limits, Limits());
  EXPECT_THAT(limits.cpu_quota, Optional(3.0));
}

// A container without a namespace sees the host's path, but only its own subtree is mounted.
TEST_F(CgroupTest, HostPathWithOwnSubtreeMounted) {
  V2("/docker/f00", "30 25 0:26 /docker/f00 /sys/fs/cgroup ro - cgroup2 cgroup ro\n");
  root_.Write("/sys/fs/cgroup/cpu.max", "300000 100000");
  ASSERT_OK_AND_ASSIGN(CgroupLimits limits, Limits());
  EXPECT_THAT(limits.cpu_quota, Optional(3.0));
  V2("/docker/f00/worker", "30 25 0:26 /docker/f00 /sys/fs/cgroup ro - cgroup2 cgroup ro\n");
  root_.Write("/sys/fs/cgroup/worker/cpu.max", "100000 100000");
  ASSERT_OK_AND_ASSIGN(limits, Limits());
  EXPECT_THAT(limits.cpu_quota, Optional(1.0));
}

// A process outside its reader's namespace root has "..", which must not be followed.
TEST_F(CgroupTest, PathOutsideTheNamespaceUsesTheMount) {
  V2("/../other");
  root_.Write("/sys/fs/cgroup/cpu.max", "300000 100000");
  root_.Write("/sys/fs/other/cpu.max", "100000 100000");
  ASSERT_OK_AND_ASSIGN(const CgroupLimits limits, Limits());
  EXPECT_THAT(limits.cpu_quota, Optional(3.0));
}

// "/job2" is no part of "/job": a mount of the latter shows somebody else's group.
TEST_F(CgroupTest, PrefersTheMountThatShowsOurGroup) {
  V2("/job2", std::string("29 25 0:26 /job /mnt/theirs rw - cgroup2 cgroup rw\n") + kV2Mount);
  root_.Write("/mnt/theirs/cpu.max", "100000 100000");
  root_.Write("/sys/fs/cgroup/job2/cpu.max", "500000 100000");
  ASSERT_OK_AND_ASSIGN(const CgroupLimits limits, Limits());
  EXPECT_THAT(limits.cpu_quota, Optional(5.0));
}

// Hybrid: the v2 tree is there, but the CPU controller hangs on v1.
TEST_F(CgroupTest, HybridReadsEachControllerWhereItIs) {
  V1("2:cpu:/job\n0::/job\n",
     "31 30 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
     "41 30 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  root_.Write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "200000");
  root_.Write("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000");
  root_.Write("/sys/fs/cgroup/unified/job/memory.max", "4096");
  ASSERT_OK_AND_ASSIGN(const CgroupLimits limits, Limits());
  EXPECT_EQ(limits.version, "v1+v2");
  EXPECT_THAT(limits.cpu_quota, Optional(2.0));
  EXPECT_THAT(limits.memory_bytes, Optional(4096u));
}

TEST_F(CgroupTest, MountPointsWithBlanks) {
  V2("/", "30 25 0:26 / /my\\040groups rw - cgroup2 cgroup2 rw\n");
  root_.Write("/my groups/cpu.max", "300000 100000");
  ASSERT_OK_AND_ASSIGN(const CgroupLimits limits, Limits());
  EXPECT_THAT(limits.cpu_quota, Optional(3.0));
}

TEST_F(CgroupTest, MissingFilesAreNoLimit) {
  ASSERT_OK_AND_ASSIGN(CgroupLimits limits, Limits());  // not even /proc
  EXPECT_EQ(limits.version, "none");
  V2("/gone/by/now");
  ASSERT_OK_AND_ASSIGN(limits, Limits());
  EXPECT_EQ(limits.version, "v2");
  EXPECT_EQ(limits.cpu_quota, std::nullopt);
}

TEST_F(CgroupTest, MalformedFilesAreNamed) {
  V2("/job");
  const std::string cpu_max = "/sys/fs/cgroup/job/cpu.max";
  for (const char* text : {"", "100000", "max", "four 100000", "1 0", "-5 100000", "1 2 3",
                           "99999999999999999999 100000", "max max"}) {
    ExpectMalformed(cpu_max, text);
  }
  for (const char* text : {"", "-1", "1.5", "4k"}) {
    ExpectMalformed("/sys/fs/cgroup/job/memory.max", text);
  }
  for (const char* text : {"0-", "3-1", "a", "0,,1", "0,", "-1", "0-99999999"}) {
    ExpectMalformed("/sys/fs/cgroup/job/cpuset.cpus", text);
  }
  root_.Write(cpu_max, "lots");
  EXPECT_THAT(Limits(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 "/sys/fs/cgroup/job/cpu.max: expected \"<microseconds or max> "
                                 "<period>\", got \"lots\""));
}

TEST_F(CgroupTest, MalformedV1FilesAreNamed) {
  V1();
  ExpectMalformed("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "400000");  // no period
  ExpectMalformed("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "");
  ExpectMalformed("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-2");
  ExpectMalformed("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "much");
}

TEST_F(CgroupTest, MalformedTablesOfTheProcessAreNamed) {
  V2("/job");
  ExpectMalformed("/proc/self/cgroup", "0:/job");
  V2("/job");
  ExpectMalformed("/proc/self/cgroup", "0::job");
  V2("/job");
  ExpectMalformed("/proc/self/mountinfo", "30 25 0:26 / /sys/fs/cgroup rw cgroup2\n");
}

}  // namespace
}  // namespace plinth::probe
