#include "plinth/comm/store/store_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/store/store_wire.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr size_t kMaxStoredBytes = size_t{64} << 20;
// A client that does not take a small reply within this is given up, so that it cannot hold
// the others.
constexpr absl::Duration kReplyPatience = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<StoreServer>> StoreServer::Start(int port, int ports, int world_size,
                                                                std::string run_id) {
  absl::StatusOr<Listener> listener = Listen(port);
  for (int next = 1; next < ports && absl::IsAlreadyExists(listener.status()); ++next) {
    listener = Listen(port + next);
  }
  if (absl::IsAlreadyExists(listener.status())) {
    return absl::AlreadyExistsError(absl::StrCat(
        ports == 1 ? "port " : "every port from ", port,
        ports == 1 ? "" : absl::StrCat(" to ", port + ports - 1),
        " for the ranks to meet at is taken, perhaps by another launch on this host: choose ",
        "another MASTER_PORT"));
  }
  RETURN_IF_ERROR(listener.status()) << "store";
  return StartOn(*std::move(listener), world_size, std::move(run_id));
}

absl::StatusOr<std::unique_ptr<StoreServer>> StoreServer::StartOn(Listener listener, int world_size,
                                                                  std::string run_id) {
  Fd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.valid()) return absl::ResourceExhaustedError("store: no file descriptor left");
  return std::unique_ptr<StoreServer>(
      new StoreServer(std::move(listener), std::move(stop), world_size, std::move(run_id)));
}

StoreServer::StoreServer(Listener listener, Fd stop, int world_size, std::string run_id)
    : listener_(std::move(listener)),
      stop_(std::move(stop)),
      world_size_(world_size),
      run_id_(std::move(run_id)),
      thread_([this] { Serve(); }) {}

StoreServer::~StoreServer() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void StoreServer::Serve() {
  while (true) {
    std::vector<pollfd> entries = {{.fd = stop_.get(), .events = POLLIN},
                                   {.fd = listener_.fd.get(), .events = POLLIN}};
    for (const auto& client : clients_)
      entries.push_back({.fd = client->fd.get(), .events = POLLIN});
    if (poll(entries.data(), entries.size(), -1) < 0) continue;
    if (entries[0].revents != 0) return;
    for (size_t i = 0; i < clients_.size(); ++i) {
      if (entries[i + 2].revents != 0 && !ReadFrom(*clients_[i])) clients_[i].reset();
    }
    std::erase(clients_, nullptr);
    if (entries[1].revents != 0) {
      absl::StatusOr<Fd> fd = Accept(listener_.fd, absl::InfinitePast());
      if (fd.ok()) clients_.push_back(std::make_unique<Client>(Client{.fd = *std::move(fd)}));
    }
  }
}

bool StoreServer::ReadFrom(Client& client) {
  char chunk[4096];
  const ssize_t got = recv(client.fd.get(), chunk, sizeof(chunk), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  client.inbox.append(chunk, static_cast<size_t>(got));
  return AnswerAll(client);
}

bool StoreServer::AnswerAll(Client& client) {
  while (client.inbox.size() >= kRequestHeaderBytes) {
    const size_t key_bytes = ReadU32(client.inbox.data() + 1);
    const size_t value_bytes = ReadU32(client.inbox.data() + 5);
    if (key_bytes > kMaxStoreKeyBytes || value_bytes > kMaxStoreValueBytes) return false;
    const size_t total = kRequestHeaderBytes + key_bytes + value_bytes;
    if (client.inbox.size() < total) return true;
    const std::string_view body = std::string_view(client.inbox).substr(kRequestHeaderBytes);
    const std::string reply = Answer(client, client.inbox[0], body.substr(0, key_bytes),
                                     body.substr(key_bytes, value_bytes));
    client.inbox.erase(0, total);
    if (reply.empty()) return false;
    const absl::Status sent = SendAll(client.fd, std::as_bytes(std::span<const char>(reply)),
                                      absl::Now() + kReplyPatience);
    if (!sent.ok()) return false;
  }
  return true;
}

// The reply, or nothing when the connection does not deserve one.
std::string StoreServer::Answer(Client& client, char op, std::string_view key,
                                std::string_view value) {
  if (op == static_cast<char>(StoreOp::kHello) && !client.greeted) {
    return Greet(client, key, value);
  }
  if (!client.greeted) return "";
  if (op == static_cast<char>(StoreOp::kGet)) {
    const auto found = entries_.find(key);
    return found == entries_.end() ? EncodeReply(StoreReply::kNotFound, "")
                                   : EncodeReply(StoreReply::kOk, found->second);
  }
  if (op != static_cast<char>(StoreOp::kSet)) return "";
  stored_bytes_ += key.size() + value.size();
  if (stored_bytes_ > kMaxStoredBytes) return "";
  entries_[std::string(key)] = std::string(value);
  return EncodeReply(StoreReply::kOk, "");
}

std::string StoreServer::Greet(Client& client, std::string_view magic, std::string_view text) {
  if (magic != kStoreMagic) return "";
  std::istringstream in{std::string(text)};
  int world_size = -1;
  int rank = -1;
  std::string run_id;
  in >> world_size >> rank;
  in.get();
  std::getline(in, run_id);
  const auto refuse = [](const std::string& why) { return EncodeReply(StoreReply::kRefused, why); };
  if (run_id != run_id_) {
    return EncodeReply(StoreReply::kOtherLaunch, absl::StrCat("it belongs to launch \"", run_id_,
                                                              "\", this rank to \"", run_id, "\""));
  }
  if (world_size != world_size_) {
    return refuse(absl::StrCat("its launch has ", world_size_, " ranks, this rank's has ",
                               world_size, ": two launches share one MASTER_PORT?"));
  }
  if (rank < 0 || rank >= world_size_) return "";
  if (!ranks_.insert(rank).second) {
    return refuse(
        absl::StrCat("a rank ", rank, " has joined already: two launches share one MASTER_PORT?"));
  }
  client.greeted = true;
  return EncodeReply(StoreReply::kOk, kStoreMagic);
}

}  // namespace plinth::comm
