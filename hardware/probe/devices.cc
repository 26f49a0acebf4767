#include "plinth/hardware/probe/devices.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace plinth::probe {
namespace {

std::string Text(const RootFs& fs, const std::string& path) { return fs.Read(path).value_or(""); }

std::optional<int64_t> NotNegative(const RootFs& fs, const std::string& path) {
  const std::optional<int64_t> value = ParseInt(Text(fs, path));
  return value && *value >= 0 ? value : std::nullopt;
}

std::optional<int> NumaNodeOf(const RootFs& fs, const std::string& device) {
  const std::optional<int64_t> node = NotNegative(fs, device + "/numa_node");  // -1: unknown
  return node ? std::optional<int>(static_cast<int>(*node)) : std::nullopt;
}

// "0x10de" as the kernel writes identifiers.
std::optional<uint32_t> Hex(const std::string& text) {
  uint32_t value = 0;
  if (text.rfind("0x", 0) != 0) return std::nullopt;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + 2, end, value, 16);
  return error == std::errc() && rest == end ? std::optional<uint32_t>(value) : std::nullopt;
}

int PrefixLength(const sockaddr* mask) {
  if (mask == nullptr) return 0;
  int bits = 0;
  if (mask->sa_family == AF_INET) {
    return std::popcount(reinterpret_cast<const sockaddr_in*>(mask)->sin_addr.s_addr);
  }
  for (const uint8_t byte : reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr.s6_addr) {
    bits += std::popcount(byte);
  }
  return bits;
}

// "192.0.2.7/24", or "" when the entry holds no IP address.
std::string AddressText(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr) return "";
  const int family = entry.ifa_addr->sa_family;
  const void* address = nullptr;
  if (family == AF_INET) {
    address = &reinterpret_cast<const sockaddr_in*>(entry.ifa_addr)->sin_addr;
  } else if (family == AF_INET6) {
    address = &reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr;
  } else {
    return "";
  }
  char text[INET6_ADDRSTRLEN];
  if (inet_ntop(family, address, text, sizeof(text)) == nullptr) return "";
  return absl::StrCat(text, "/", PrefixLength(entry.ifa_netmask));
}

// No file lists IPv4 addresses by interface; the live kernel is asked directly.
void AddLiveAddresses(std::vector<Nic>* nics) {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) return;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(raw, freeifaddrs);
  for (const ifaddrs* entry = raw; entry != nullptr; entry = entry->ifa_next) {
    const std::string text = AddressText(*entry);
    if (text.empty()) continue;
    for (Nic& nic : *nics) {
      if (nic.name == entry->ifa_name) nic.addresses.push_back(text);
    }
  }
}

struct Vendor {
  uint32_t id;
  std::string_view name;
  // Makers whose accelerators carry a class that says nothing about computing.
  std::optional<uint32_t> own_class = std::nullopt;  // top 16 bits of the class
};
constexpr Vendor kVendors[] = {
    {0x10de, "NVIDIA"},         {0x1002, "AMD"},
    {0x8086, "Intel"},          {0x1ae0, "Google", 0xff00},
    {0x1d0f, "Amazon", 0x0880}, {0x1da3, "Habana"},
    {0x17cb, "Qualcomm"},       {0x19e5, "Huawei"},
    {0x1e52, "Tenstorrent"},
};

const Vendor* FindVendor(uint32_t id) {
  for (const Vendor& vendor : kVendors) {
    if (vendor.id == id) return &vendor;
  }
  return nullptr;
}

// Processing accelerators (class 12) of anyone; display controllers (class 03) of the makers
// above only, as others (server management chips, virtual screens) do not compute.
bool MayCompute(uint32_t pci_class, const Vendor* vendor) {
  const uint32_t base = pci_class >> 16;
  if (base == 0x12) return true;
  if (vendor == nullptr) return false;
  return base == 0x03 || vendor->own_class == pci_class >> 8;
}

}  // namespace

std::vector<Nic> ReadNics(const RootFs& fs) {
  const std::string base = "/sys/class/net";
  std::vector<Nic> nics;
  for (const std::string& name : fs.List(base)) {
    const std::string directory = base + "/" + name;
    if (!fs.IsDirectory(directory)) continue;  // "bonding_masters" is a file
    nics.push_back({.name = name,
                    .state = Text(fs, directory + "/operstate"),
                    .driver = fs.LinkName(directory + "/device/driver"),
                    .mac = Text(fs, directory + "/address"),
                    .speed_mbps = NotNegative(fs, directory + "/speed"),
                    .mtu_bytes = NotNegative(fs, directory + "/mtu"),
                    .numa_node = NumaNodeOf(fs, directory + "/device"),
                    .is_virtual = !fs.IsDirectory(directory + "/device")});
  }
  if (fs.live()) AddLiveAddresses(&nics);
  return nics;
}

std::vector<PciAccelerator> ReadPciAccelerators(const RootFs& fs) {
  const std::string base = "/sys/bus/pci/devices";
  std::vector<PciAccelerator> found;
  for (const std::string& address : fs.List(base)) {
    const std::string directory = base + "/" + address;
    const std::optional<uint32_t> vendor_id = Hex(Text(fs, directory + "/vendor"));
    const std::optional<uint32_t> pci_class = Hex(Text(fs, directory + "/class"));
    if (!vendor_id || !pci_class) continue;
    const Vendor* vendor = FindVendor(*vendor_id);
    if (!MayCompute(*pci_class, vendor)) continue;
    found.push_back({.address = address,
                     .vendor_id = *vendor_id,
                     .device_id = Hex(Text(fs, directory + "/device")).value_or(0),
                     .pci_class = *pci_class,
                     .vendor = vendor == nullptr ? "" : std::string(vendor->name),
                     .driver = fs.LinkName(directory + "/driver"),
                     .link_speed = Text(fs, directory + "/current_link_speed"),
                     .link_lanes = NotNegative(fs, directory + "/current_link_width"),
                     .numa_node = NumaNodeOf(fs, directory)});
  }
  return found;
}

}  // namespace plinth::probe
