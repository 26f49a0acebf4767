#include "plinth/hardware/base/program.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/parse.h"
#include "absl/flags/reflection.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "plinth/hardware/base/one_line.h"

namespace plinth {
namespace {

bool IsLibraryFile(absl::string_view file) { return absl::StrContains(file, "absl/"); }

enum class Help { kOwnFlags, kAllFlags };

// Nothing when no argument asks for help. The value of a flag is no such argument.
std::optional<Help> AskedForHelp(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (argument == "--") break;
    if (!absl::ConsumePrefix(&argument, "-")) continue;
    absl::ConsumePrefix(&argument, "-");
    const size_t equals = argument.find('=');
    const absl::string_view name = argument.substr(0, equals);
    if (const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name)) {
      if (equals == absl::string_view::npos && !flag->IsOfType<bool>()) ++i;
    } else if (name == "helpfull") {
      return Help::kAllFlags;
    } else if (name == "h" || absl::StartsWith(name, "help")) {
      return Help::kOwnFlags;
    }
  }
  return std::nullopt;
}

bool Print(const std::string& text) {
  return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
}

[[noreturn]] void ShowHelp(Help help) {
  std::string text = absl::StrCat(absl::ProgramUsageMessage(), "\n");
  std::map<absl::string_view, const absl::CommandLineFlag*> flags;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (help == Help::kAllFlags || !IsLibraryFile(flag->Filename())) flags[name] = flag;
  }
  if (!flags.empty()) absl::StrAppend(&text, "\nFlags:\n");
  for (const auto& [name, flag] : flags) {
    const std::string value = flag->DefaultValue();
    absl::StrAppend(&text, "  --", name, value.empty() ? "" : absl::StrCat("=", value), "\n      ",
                    flag->Help(), "\n");
  }
  std::exit(Print(text) ? EXIT_SUCCESS : EXIT_FAILURE);
}

}  // namespace

void SetProgramHelp(std::string_view usage) {
  absl::SetProgramUsageMessage(absl::string_view(usage.data(), usage.size()));
}

std::vector<char*> ParseFlags(int argc, char** argv) {
  if (const std::optional<Help> help = AskedForHelp(argc, argv)) ShowHelp(*help);
  absl::FlagsUsageConfig config;
  const std::string path = argc > 0 ? argv[0] : "";
  config.version_string = [path] {
    return absl::StrCat(path.substr(path.rfind('/') + 1), " of Plinth\n");
  };
  absl::SetFlagsUsageConfig(config);
  return absl::ParseCommandLine(argc, argv);
}

void ParseFlagsOnly(std::string_view name, int argc, char** argv) {
  const std::vector<char*> rest = ParseFlags(argc, argv);
  if (rest.size() <= 1) return;
  std::fprintf(stderr, "%.*s: unexpected argument \"%s\"; see --help\n",
               static_cast<int>(name.size()), name.data(), rest[1]);
  std::exit(EXIT_FAILURE);
}

int ReportError(std::string_view name, const absl::Status& status) {
  const absl::string_view message = status.message();
  std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(name.size()), name.data(),
               OneLine(std::string_view(message.data(), message.size())).c_str());
  return EXIT_FAILURE;
}

int PrintReport(std::string_view name, const absl::StatusOr<std::string>& report) {
  if (!report.ok()) return ReportError(name, report.status());
  if (Print(*report)) return EXIT_SUCCESS;
  return ReportError(name, absl::UnavailableError("cannot write to stdout"));
}

}  // namespace plinth
