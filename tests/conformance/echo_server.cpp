// Serves the echo application on 127.0.0.1 until a signal comes, for conformance
// runs with other people's clients.
//
//   echo_server [--port N] [--takeover] [--certificate F --key F] [--short]
#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>

#include "core/error.hpp"
#include "tests/support/echo_application.hpp"

int main(int argc, char** argv) {
  octavo::net::server_options options;
  bool is_short = false;
  CLI::App cli("Echoes over HTTP and WebSocket");
  cli.add_option("--port", options.port, "0: any free one");
  cli.add_flag("--takeover", options.deflate_takeover, "keep compression contexts");
  cli.add_option("--deflate-min", options.deflate_bytes_min, "smaller messages go out as they are");
  cli.add_option("--certificate", options.certificate_file, "PEM chain");
  cli.add_option("--key", options.key_file, "PEM key");
  cli.add_option("--connections-max", options.connections_max, "of the server");
  cli.add_flag("--short", is_short, "time limits of a second");
  CLI11_PARSE(cli, argc, argv);
  if (is_short) {
    using std::chrono::milliseconds;
    options.header_timeout = options.body_timeout = options.idle_timeout = milliseconds(1000);
    options.write_timeout = options.ping_interval = options.pong_timeout = milliseconds(1000);
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  octavo::testing::echo_counts counts;
  auto app = octavo::testing::echo_application(counts);
  app.log = [](std::string_view line) { std::cerr << line << '\n'; };
  try {
    octavo::net::server server(options, std::move(app));
    server.start();
    std::cout << server.port() << std::endl;
    int signal = 0;
    sigwait(&signals, &signal);
    server.stop_accepting();
    server.close_all(1001, "the server stops");
    server.join();
  } catch (const octavo::input_error& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
  return 0;
}
