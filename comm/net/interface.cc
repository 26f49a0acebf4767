#include "plinth/comm/net/interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

// The address itself: 4 or 16 bytes in network order.
std::span<const uint8_t> BytesOf(const SocketAddress& address) {
  if (address.storage.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address.storage);
    return {reinterpret_cast<const uint8_t*>(&four.sin_addr), sizeof(four.sin_addr)};
  }
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address.storage);
  return {reinterpret_cast<const uint8_t*>(&six.sin6_addr), sizeof(six.sin6_addr)};
}

// One item of a pattern.
struct Item {
  bool excludes = false;
  std::string name;              // empty for a network
  bool prefix = false;           // names that begin so
  std::vector<uint8_t> network;  // 4 or 16 bytes
  int network_bits = 0;

  bool Matches(const InterfaceAddress& interface) const {
    if (network.empty()) {
      return prefix ? absl::StartsWith(interface.name, name) : interface.name == name;
    }
    const std::span<const uint8_t> address = BytesOf(interface.address);
    if (address.size() != network.size()) return false;
    for (int bit = 0; bit < network_bits; ++bit) {
      const uint8_t mask = static_cast<uint8_t>(0x80 >> (bit % 8));
      if ((address[bit / 8] & mask) != (network[bit / 8] & mask)) return false;
    }
    return true;
  }
};

absl::StatusOr<Item> ParseItem(std::string text) {
  Item item;
  const std::string whole = text;
  if (absl::StartsWith(text, "^")) {
    item.excludes = true;
    text.erase(0, 1);
  }
  const size_t slash = text.find('/');
  if (slash != std::string::npos) {
    item.network.resize(sizeof(in6_addr));
    const std::string host = text.substr(0, slash);
    if (inet_pton(AF_INET, host.c_str(), item.network.data()) == 1) {
      item.network.resize(sizeof(in_addr));
    } else if (inet_pton(AF_INET6, host.c_str(), item.network.data()) != 1) {
      return absl::InvalidArgumentError(absl::StrCat("\"", whole, "\" is no network"));
    }
    const int most = static_cast<int>(item.network.size()) * 8;
    if (!absl::SimpleAtoi(text.substr(slash + 1), &item.network_bits) || item.network_bits < 0 ||
        item.network_bits > most) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", whole, "\": want 0 to ", most, " after the slash"));
    }
    return item;
  }
  if (absl::EndsWith(text, "*")) {
    item.prefix = true;
    text.pop_back();
  }
  if (text.find_first_of("*^") != std::string::npos || (text.empty() && !item.prefix)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", whole, "\" is no interface"));
  }
  item.name = std::move(text);
  return item;
}

absl::StatusOr<std::vector<Item>> ParsePattern(std::string_view pattern) {
  std::vector<Item> items;
  const std::vector<std::string> texts = absl::StrSplit(std::string(pattern), ',');
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(Item item, ParseItem(text));
    items.push_back(std::move(item));
  }
  return items;
}

std::string Advice(std::span<const InterfaceAddress> interfaces) {
  return absl::StrCat("; there is ", DescribeInterfaces(interfaces));
}

}  // namespace

std::vector<InterfaceAddress> ListInterfaces() {
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(found, freeifaddrs);
  std::vector<InterfaceAddress> interfaces;
  for (const ifaddrs* entry = found; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    InterfaceAddress interface {
      entry->ifa_name, {}
    };
    interface.address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&interface.address.storage, entry->ifa_addr, interface.address.length);
    const auto& six = reinterpret_cast<const sockaddr_in6&>(interface.address.storage);
    if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr)) continue;
    interfaces.push_back(std::move(interface));
  }
  return interfaces;
}

std::string DescribeInterfaces(std::span<const InterfaceAddress> interfaces) {
  std::vector<std::pair<std::string, std::vector<std::string>>> grouped;
  for (const InterfaceAddress& interface : interfaces) {
    const auto group = std::find_if(grouped.begin(), grouped.end(),
                                    [&](const auto& g) { return g.first == interface.name; });
    if (group == grouped.end()) {
      grouped.push_back({interface.name, {interface.address.Host()}});
    } else {
      group->second.push_back(interface.address.Host());
    }
  }
  std::vector<std::string> texts;
  for (const auto& [name, hosts] : grouped) {
    texts.push_back(absl::StrCat(name, " (", absl::StrJoin(hosts, ", "), ")"));
  }
  return texts.empty() ? "no interface" : absl::StrJoin(texts, ", ");
}

absl::StatusOr<std::vector<InterfaceAddress>> ChooseInterfaces(
    std::string_view pattern, std::span<const InterfaceAddress> interfaces) {
  const absl::StatusOr<std::vector<Item>> parsed = ParsePattern(pattern);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(parsed.status().message(), Advice(interfaces)));
  }
  std::vector<Item> wanted;
  std::vector<Item> unwanted;
  for (const Item& item : *parsed) (item.excludes ? unwanted : wanted).push_back(item);
  const bool any = wanted.empty();
  if (any) wanted.push_back(Item{.prefix = true});

  std::vector<InterfaceAddress> chosen;
  std::vector<char> taken(interfaces.size(), 0);
  for (const Item& item : wanted) {
    for (size_t i = 0; i < interfaces.size(); ++i) {
      const auto excluded = [&](const Item& no) { return no.Matches(interfaces[i]); };
      if (taken[i] || !item.Matches(interfaces[i]) ||
          std::any_of(unwanted.begin(), unwanted.end(), excluded) ||
          (any && interfaces[i].address.IsLoopback())) {
        continue;
      }
      taken[i] = 1;
      chosen.push_back(interfaces[i]);
    }
  }
  if (!chosen.empty()) return chosen;
  return absl::NotFoundError(
      absl::StrCat("\"", std::string(pattern), "\" chooses no interface", Advice(interfaces)));
}

}  // namespace plinth::comm
