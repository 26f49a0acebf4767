#include "plinth/infer/serve/http/server.h"

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/infer/serve/testing/raw_client.h"

namespace plinth::infer::http {
namespace {

using infer::testing::RawClient;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::unique_ptr<Server> StartOrDie(ServerOptions options, Handler handler) {
  auto server = Server::Start(options, std::move(handler));
  EXPECT_OK(server);
  return *std::move(server);
}

void Echo(const Request& request, Response& response) {
  response.Send(200, "text/plain",
                absl::StrCat(request.method, " ", request.path, " ",
                             request.Parameter("q").value_or("-"), " ", request.body),
                {{"X-Kind", "echo"}});
}

TEST(HttpServer, AnswersAndKeepsTheConnection) {
  const auto server = StartOrDie({}, Echo);
  RawClient client(server->port());
  client.Send("POST /a/b?p=1&q=x%20y HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_THAT(client.ReadUntil("hello"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("X-Kind: echo"),
                    EndsWith("POST /a/b x%20y hello")));
  // Two requests in one segment.
  client.Send("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.ReadAll(), AllOf(HasSubstr("GET /1 - "), HasSubstr("GET /2 - ")));
}

TEST(HttpServer, AClientThatWaitsIsToldToContinue) {
  const auto server = StartOrDie({}, Echo);
  RawClient client(server->port());
  client.Send("POST /x HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("hello");
  EXPECT_THAT(client.ReadUntil("hello"), StartsWith("HTTP/1.1 200"));
  // A body that is too large is refused before it is sent.
  client.Send("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n");
  EXPECT_THAT(client.ReadAll(), StartsWith("HTTP/1.1 413"));
}

TEST(HttpServer, HeadHasNoBody) {
  const auto server = StartOrDie({}, Echo);
  RawClient client(server->port());
  client.Send("HEAD /x HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.ReadAll(), AllOf(HasSubstr("Content-Length: 10"), EndsWith("\r\n\r\n")));
}

TEST(HttpServer, StreamsInChunks) {
  const auto server = StartOrDie({}, [](const Request&, Response& response) {
    response.StartStream("text/event-stream");
    EXPECT_TRUE(response.Write("one"));
    EXPECT_TRUE(response.Write(""));  // would otherwise end the stream
    EXPECT_TRUE(response.Write("three"));
    response.Finish();
  });
  RawClient client(server->port());
  client.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.ReadUntil("0\r\n\r\n"),
              AllOf(HasSubstr("Transfer-Encoding: chunked"),
                    EndsWith("\r\n\r\n3\r\none\r\n5\r\nthree\r\n0\r\n\r\n")));
}

TEST(HttpServer, AnOlderClientGetsAStreamWithoutChunks) {
  const auto server = StartOrDie({}, [](const Request&, Response& response) {
    response.StartStream("text/plain");
    EXPECT_TRUE(response.Write("one"));
    EXPECT_TRUE(response.Write("two"));
    response.Finish();
  });
  RawClient client(server->port());
  client.Send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const std::string reply = client.ReadAll();  // ends with the connection
  EXPECT_THAT(reply, EndsWith("\r\n\r\nonetwo"));
  EXPECT_THAT(reply, ::testing::Not(HasSubstr("chunked")));
}

TEST(HttpServer, TellsAHandlerThatItsClientHasGone) {
  std::atomic<bool> gone{false};
  const auto server = StartOrDie({}, [&](const Request&, Response& response) {
    response.StartStream("text/plain");
    response.Write("x");
    const absl::Time give_up = absl::Now() + absl::Seconds(10);
    while (!response.Gone() && absl::Now() < give_up) absl::SleepFor(absl::Milliseconds(5));
    gone = response.Gone();
  });
  RawClient client(server->port());
  client.Send("GET / HTTP/1.1\r\n\r\n");
  client.ReadUntil("x\r\n");
  EXPECT_FALSE(gone);
  client.Close();
  const absl::Time give_up = absl::Now() + absl::Seconds(10);
  while (!gone && absl::Now() < give_up) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_TRUE(gone);
}

TEST(HttpServer, AClientThatDoesNotReadEndsTheStream) {
  std::atomic<bool> ended{false};
  ServerOptions options;
  options.write_deadline = absl::Milliseconds(100);
  const auto server = StartOrDie(options, [&](const Request&, Response& response) {
    response.StartStream("text/plain");
    const std::string block(1 << 20, 'x');
    while (response.Write(block)) {
    }
    ended = true;
  });
  RawClient client(server->port());
  client.Send("GET / HTTP/1.1\r\n\r\n");
  const absl::Time give_up = absl::Now() + absl::Seconds(10);
  while (!ended && absl::Now() < give_up) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_TRUE(ended);
}

TEST(HttpServer, BadRequestsGetAReason) {
  ServerOptions options;
  options.max_body_bytes = 10;
  options.request_deadline = absl::Milliseconds(100);
  const auto server = StartOrDie(options, Echo);
  const auto answer = [&](const std::string& request) {
    RawClient client(server->port());
    client.Send(request);
    return client.ReadAll();
  };
  EXPECT_THAT(answer("nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(answer("POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\nhello world"),
              AllOf(StartsWith("HTTP/1.1 413"), HasSubstr("larger than 10 bytes")));
  EXPECT_THAT(answer("GET / HTTP/1.1\r\nX: " + std::string(70000, 'y') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(answer("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhal"),
              StartsWith("HTTP/1.1 408"));
}

TEST(HttpServer, ARefusalReachesAClientThatIsStillSending) {
  ServerOptions options;
  options.max_body_bytes = 10;
  const auto server = StartOrDie(options, Echo);
  RawClient client(server->port());
  const std::string body(8 << 20, 'x');
  client.Send(absl::StrCat("POST / HTTP/1.1\r\nContent-Length: ", body.size(), "\r\n\r\n", body));
  EXPECT_THAT(client.ReadAll(), StartsWith("HTTP/1.1 413"));
}

TEST(HttpServer, RefusesMoreConnectionsThanItHasThreads) {
  ServerOptions options;
  options.max_connections = 1;
  std::atomic<bool> inside{false}, end{false};
  const auto server = StartOrDie(options, [&](const Request& request, Response& response) {
    inside = true;
    while (!end) absl::SleepFor(absl::Milliseconds(2));
    Echo(request, response);
  });
  RawClient first(server->port());
  first.Send("GET / HTTP/1.1\r\n\r\n");
  while (!inside) absl::SleepFor(absl::Milliseconds(2));
  RawClient second(server->port());
  second.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(second.ReadAll(), AllOf(StartsWith("HTTP/1.1 503"), EndsWith("}}")));
  end = true;
  EXPECT_THAT(first.ReadUntil("GET /"), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, ANewClientGetsThePlaceOfTheOneThatIsIdleLongest) {
  ServerOptions options;
  options.max_connections = 3;
  const auto server = StartOrDie(options, Echo);
  const auto serve = [](RawClient& client) {
    client.Send("GET /again HTTP/1.1\r\n\r\n");
    return client.ReadUntil("GET /again - ");
  };
  RawClient silent(server->port());
  absl::SleepFor(absl::Milliseconds(20));
  RawClient first(server->port()), second(server->port());
  EXPECT_THAT(serve(first), StartsWith("HTTP/1.1 200"));
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_THAT(serve(second), StartsWith("HTTP/1.1 200"));
  absl::SleepFor(absl::Milliseconds(20));
  RawClient third(server->port());
  EXPECT_THAT(serve(third), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(silent.ReadAll(), "");  // never said a word
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_THAT(serve(first), StartsWith("HTTP/1.1 200"));  // kept, and now the last to be idle
  absl::SleepFor(absl::Milliseconds(20));
  RawClient fourth(server->port());
  EXPECT_THAT(serve(fourth), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(second.ReadAll(), "");
  for (RawClient* client : {&first, &third, &fourth}) {
    EXPECT_THAT(serve(*client), StartsWith("HTTP/1.1 200"));
  }
}

TEST(HttpServer, ABodyOfUnknownEndIsNotTakenForARequest) {
  const auto server = StartOrDie({}, Echo);
  RawClient client(server->port());
  client.Send("POST /1 HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\nGET /2 HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.ReadAll(), AllOf(StartsWith("HTTP/1.1 501"), Not(HasSubstr("/2"))));
}

TEST(HttpServer, AHandlerWithoutAnAnswerIs500) {
  const auto server = StartOrDie({}, [](const Request&, Response&) {});
  RawClient client(server->port());
  client.Send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.ReadAll(), StartsWith("HTTP/1.1 500"));
}

TEST(HttpServer, AHandlerThatGivesUpIsExplained) {
  std::atomic<int> inside{0};
  auto server = StartOrDie({}, [&](const Request&, Response& response) {
    ++inside;
    while (!response.Gone()) absl::SleepFor(absl::Milliseconds(2));
  });
  RawClient half(server->port()), stopped(server->port());
  half.Send("GET / HTTP/1.1\r\n\r\n");
  half.CloseSending();
  EXPECT_THAT(half.ReadAll(), AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("closed its side")));
  stopped.Send("GET / HTTP/1.1\r\n\r\n");
  while (inside < 2) absl::SleepFor(absl::Milliseconds(1));
  server.reset();
  EXPECT_THAT(stopped.ReadAll(), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("is stopping")));
}

// A byte now and then does not hold a connection beyond the deadline of a whole request.
TEST(HttpServer, ASlowSenderIsCutOff) {
  ServerOptions options;
  options.request_deadline = absl::Milliseconds(150);
  options.idle_deadline = absl::Milliseconds(150);
  const auto server = StartOrDie(options, Echo);
  for (const char* start : {"G", "GET / HTTP/1.1\r\nA",
                            "POST / HTTP/1.1\r\nContent-"
                            "Length: 999\r\n\r\n"}) {
    RawClient client(server->port());
    const absl::Time begin = absl::Now();
    client.Send(start);
    std::string reply;
    while (reply.empty() && absl::Now() - begin < absl::Seconds(5)) {
      client.TrySend("a");
      reply = client.ReadFor(absl::Milliseconds(20));
    }
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 408"));
    EXPECT_LT(absl::Now() - begin, absl::Seconds(3));
  }
  RawClient silent(server->port());
  EXPECT_EQ(silent.ReadAll(), "") << "nothing was asked, nothing is answered";
}

TEST(HttpServer, AUsedPortIsAnError) {
  const auto server = StartOrDie({}, Echo);
  ServerOptions options;
  options.port = server->port();
  EXPECT_THAT(
      Server::Start(options, Echo),
      ::plinth::testing::StatusIs(absl::StatusCode::kUnavailable,
                                  AllOf(HasSubstr(absl::StrCat("127.0.0.1:", server->port())),
                                        HasSubstr("Address already in use"))));
  options.host = "no.such.host.invalid";
  EXPECT_THAT(Server::Start(options, Echo),
              ::plinth::testing::StatusIs(absl::StatusCode::kUnavailable));
}

TEST(HttpServer, StopsWhileClientsAreConnected) {
  std::atomic<bool> inside{false};
  auto server = StartOrDie({}, [&](const Request&, Response& response) {
    response.StartStream("text/plain");
    inside = true;
    while (!response.Gone()) absl::SleepFor(absl::Milliseconds(5));
  });
  RawClient idle(server->port()), busy(server->port());
  busy.Send("GET / HTTP/1.1\r\n\r\n");
  while (!inside) absl::SleepFor(absl::Milliseconds(1));
  const absl::Time start = absl::Now();
  server.reset();
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

}  // namespace
}  // namespace plinth::infer::http
