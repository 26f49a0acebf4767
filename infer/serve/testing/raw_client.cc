#include "plinth/infer/serve/testing/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "gtest/gtest.h"

namespace plinth::infer::testing {

RawClient::RawClient(int port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  timeval patience{10, 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
}

void RawClient::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void RawClient::CloseSending() { EXPECT_EQ(shutdown(fd_, SHUT_WR), 0); }

void RawClient::TrySend(const std::string& text) {
  [[maybe_unused]] const ssize_t sent = send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
}

std::string RawClient::ReadFor(absl::Duration patience) {
  pollfd polled = {fd_, POLLIN, 0};
  if (poll(&polled, 1, static_cast<int>(absl::ToInt64Milliseconds(patience))) <= 0) return "";
  char buffer[4096];
  const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
  return n > 0 ? std::string(buffer, static_cast<size_t>(n)) : "";
}

void RawClient::Send(const std::string& text) {
  EXPECT_EQ(send(fd_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

void RawClient::SendRequest(const std::string& method, const std::string& target,
                            const std::string& body) {
  Send(method + " " + target + " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n" +
       "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

std::string RawClient::ReadUntil(const std::string& text) {
  std::string got;
  char buffer[4096];
  while (text.empty() || got.find(text) == std::string::npos) {
    const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
    if (n <= 0) break;
    got.append(buffer, static_cast<size_t>(n));
  }
  return got;
}

HttpReply Fetch(int port, const std::string& method, const std::string& target,
                const std::string& body) {
  RawClient client(port);
  client.SendRequest(method, target, body);
  const std::string all = client.ReadAll();
  const size_t head_end = all.find("\r\n\r\n");
  HttpReply reply;
  if (head_end == std::string::npos) {
    ADD_FAILURE() << "no reply: " << all;
    return reply;
  }
  reply.head = all.substr(0, head_end + 2);
  reply.status = std::atoi(reply.head.c_str() + sizeof("HTTP/1.1 ") - 1);
  const std::string rest = all.substr(head_end + 4);
  if (reply.head.find("chunked") == std::string::npos) {
    reply.body = rest;
    return reply;
  }
  for (size_t at = 0; at < rest.size();) {
    const size_t size = std::strtoul(rest.c_str() + at, nullptr, 16);
    const size_t data = rest.find("\r\n", at) + 2;
    reply.body += rest.substr(data, size);
    at = data + size + 2;
  }
  return reply;
}

}  // namespace plinth::infer::testing
