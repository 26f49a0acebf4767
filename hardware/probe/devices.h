// Network interfaces and PCIe accelerators, from /sys.
#ifndef PLINTH_HARDWARE_PROBE_DEVICES_H_
#define PLINTH_HARDWARE_PROBE_DEVICES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plinth/hardware/probe/root_fs.h"

namespace plinth::probe {

struct Nic {
  std::string name;
  std::string state;   // the kernel's operstate: "up", "down", "unknown" (loopback), ...
  std::string driver;  // "" for virtual interfaces
  std::string mac;
  std::optional<int64_t> speed_mbps;  // unset when the link is down or the driver cannot tell
  std::optional<int64_t> mtu_bytes;
  std::optional<int> numa_node;
  bool is_virtual = false;             // no device behind it: loopback, bridge, tunnel
  std::vector<std::string> addresses;  // "192.0.2.7/24"; only of the live system
};

// A PCI function that may compute. What drives it is the driver's to say.
struct PciAccelerator {
  std::string address;  // "0000:3b:00.0"
  uint32_t vendor_id = 0;
  uint32_t device_id = 0;
  uint32_t pci_class = 0;  // 24 bits
  std::string vendor;      // "NVIDIA"; "" when not in our short list
  std::string driver;      // "" when none is bound
  std::string link_speed;  // as the kernel says: "16.0 GT/s PCIe"; "" unknown
  std::optional<int64_t> link_lanes;
  std::optional<int> numa_node;
};

// These lists inform and decide nothing, so an attribute that cannot be read (many drivers
// answer EINVAL) or makes no sense is left unset instead of hiding the device.
std::vector<Nic> ReadNics(const RootFs& fs);
std::vector<PciAccelerator> ReadPciAccelerators(const RootFs& fs);

}  // namespace plinth::probe

#endif  // PLINTH_HARDWARE_PROBE_DEVICES_H_
