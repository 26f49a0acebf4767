// A directory tree that stands in for / in tests: files are given by their absolute paths.
#ifndef PLINTH_HARDWARE_PROBE_FAKE_ROOT_H_
#define PLINTH_HARDWARE_PROBE_FAKE_ROOT_H_

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "plinth/hardware/base/check.h"

namespace plinth::probe {

// Made empty in the test's temporary directory, removed at the end. Not thread-safe.
class FakeRoot {
 public:
  FakeRoot() {
    std::string pattern = ::testing::TempDir() + "/root.XXXXXX";
    CHECK(mkdtemp(pattern.data()) != nullptr) << pattern;
    path_ = pattern;
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  const std::string& path() const { return path_; }

  void Write(const std::string& file, const std::string& text) const {
    const std::filesystem::path full = path_ + file;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
    CHECK(std::filesystem::file_size(full) == text.size()) << full;
  }
  void Link(const std::string& file, const std::string& target) const {
    const std::filesystem::path full = path_ + file;
    std::filesystem::create_directories(full.parent_path());
    std::filesystem::create_symlink(target, full);
  }
  void Remove(const std::string& file) const { std::filesystem::remove_all(path_ + file); }

  // `cpus` single-threaded cores in one socket, and memory.
  void WriteMachine(int cpus) const {
    const std::string all = cpus == 1 ? "0" : "0-" + std::to_string(cpus - 1);
    const std::string base = "/sys/devices/system/cpu/";
    for (const char* name : {"online", "possible", "present"}) Write(base + name, all + "\n");
    for (int cpu = 0; cpu < cpus; ++cpu) {
      const std::string topology = base + "cpu" + std::to_string(cpu) + "/topology/";
      Write(topology + "physical_package_id", "0\n");
      Write(topology + "core_id", std::to_string(cpu) + "\n");
      const std::string bit = Mask(cpu);
      for (const char* name : {"core_cpus", "thread_siblings"}) Write(topology + name, bit);
      for (const char* name : {"package_cpus", "core_siblings"}) {
        std::string mask(static_cast<size_t>((cpus + 3) / 4), 'f');
        Write(topology + name, mask + "\n");
      }
    }
    Write("/proc/meminfo", "MemTotal:       67108864 kB\nMemAvailable:   33554432 kB\n");
    Write("/proc/cpuinfo",
          "processor\t: 0\nmodel name\t: Imaginary 9000\nflags\t\t: fpu avx2 fma\n");
  }

 private:
  // Bit `cpu` as the kernel writes masks; tests stay below 32 CPUs.
  static std::string Mask(int cpu) {
    char text[16];
    std::snprintf(text, sizeof(text), "%x\n", 1u << cpu);
    return text;
  }

  std::string path_;
};

}  // namespace plinth::probe

#endif  // PLINTH_HARDWARE_PROBE_FAKE_ROOT_H_
