#include "plinth/config/loader/command_line.h"

#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace plinth::config {
namespace {

// The value of `--name=value`, or of `--name value` (then *i moves on). Nothing when
// argv[*i] is another argument.
absl::StatusOr<std::optional<std::string>> ValueOf(const std::string& name, int argc, char** argv,
                                                   int* i) {
  std::string_view argument = argv[*i];
  if (argument.substr(0, 1) != "-") return std::nullopt;
  argument.remove_prefix(argument.substr(0, 2) == "--" ? 2 : 1);
  if (argument == name) {
    if (*i + 1 >= argc) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, " needs a value"));
    }
    return std::string(argv[++*i]);
  }
  if (argument.size() > name.size() && argument.substr(0, name.size()) == name &&
      argument[name.size()] == '=') {
    return std::string(argument.substr(name.size() + 1));
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<ConfigFlags> TakeConfigFlags(int& argc, char** argv) {
  ConfigFlags flags;
  int kept = 0;
  int i = 0;
  for (; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--") break;
    const absl::StatusOr<std::optional<std::string>> config = ValueOf("config", argc, argv, &i);
    if (!config.ok()) return config.status();
    if (config->has_value()) {
      if (!flags.config.empty()) return absl::InvalidArgumentError("--config is given twice");
      flags.config = **config;
      continue;
    }
    const absl::StatusOr<std::optional<std::string>> set = ValueOf("set", argc, argv, &i);
    if (!set.ok()) return set.status();
    if (set->has_value()) {
      flags.settings.push_back(**set);
      continue;
    }
    argv[kept++] = argv[i];
  }
  for (; i < argc; ++i) argv[kept++] = argv[i];
  argv[kept] = nullptr;  // argv has argc + 1 entries
  argc = kept;
  return flags;
}

std::vector<std::string> ToArguments(const ConfigFlags& flags) {
  std::vector<std::string> arguments;
  if (!flags.config.empty()) arguments.push_back("--config=" + flags.config);
  for (const std::string& setting : flags.settings) arguments.push_back("--set=" + setting);
  return arguments;
}

}  // namespace plinth::config
