#include "plinth/tools/prepare/prepare.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/base/status_matchers.h"
#include "plinth/models/tokenizer/bpe_trainer.h"
#include "plinth/models/tokenizer/tokenizer.h"
#include "plinth/storage/dataset/token_dataset.h"
#include "plinth/storage/io/checksum.h"
#include "plinth/storage/io/directory.h"
#include "plinth/storage/io/fault_injection.h"
#include "plinth/storage/io/read_file.h"

namespace plinth::tools {
namespace {

namespace fs = std::filesystem;
using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;

// Words, blank lines, indentation, characters of several bytes, and bytes that are no UTF-8.
std::string SampleText(size_t bytes, uint64_t seed) {
  static const std::string kParts[] = {"the ", "quick ",    "brown",  "\n",      "fox 12345 ",
                                       "\n\n", "\t indent", "größe ", "日本語 ", "\xff\xfe",
                                       "?!\n", "  \n  ",    "a"};
  std::mt19937_64 random(seed);
  std::string text;
  while (text.size() < bytes) text += kParts[random() % std::size(kParts)];
  return text;
}

class PrepareTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = ::testing::TempDir() + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    options_.tokenizer = dir_ + "/tokenizer.json";
    options_.output = dir_ + "/data";
    ASSERT_OK_AND_ASSIGN(const auto trainer, models::BpeTrainer::Create({.vocab_size = 300}));
    ASSERT_OK(trainer->AddText(SampleText(20000, 1)));
    ASSERT_OK_AND_ASSIGN(tokenizer_, trainer->Train());
    ASSERT_OK(tokenizer_->Save(options_.tokenizer));
  }
  // Writes the text to a file and adds it to the inputs.
  void Input(const std::string& name, const std::string& text) {
    options_.inputs.push_back(dir_ + "/" + name);
    ASSERT_OK(storage::WriteFileAtomically(options_.inputs.back(), text));
  }
  absl::StatusOr<std::vector<int32_t>> Tokens(const std::string& split) {
    ASSIGN_OR_RETURN(const auto data, storage::TokenDataset::Open(options_.output + "/" + split));
    RETURN_IF_ERROR(data->Verify());
    std::vector<int32_t> tokens(static_cast<size_t>(data->size()));
    RETURN_IF_ERROR(data->Copy(0, tokens));
    return tokens;
  }
  std::string Decoded(const std::string& split) {
    const auto tokens = Tokens(split);
    return tokens.ok() ? *tokenizer_->Decode(*tokens, {}) : tokens.status().ToString();
  }
  // Names in the working directory besides the inputs and the tokenizer.
  std::vector<std::string> Leftovers() {
    std::vector<std::string> names = *storage::ListDirectory(dir_);
    std::erase_if(names, [this](const std::string& name) {
      const std::string path = dir_ + "/" + name;
      return path == options_.tokenizer ||
             std::count(options_.inputs.begin(), options_.inputs.end(), path) > 0;
    });
    return names;
  }

  std::string dir_;
  PrepareOptions options_;
  std::unique_ptr<models::Tokenizer> tokenizer_;
};

TEST_F(PrepareTest, SplitsAtALineAndKeepsEveryByte) {
  const std::string first = SampleText(5000, 2), second = SampleText(9000, 3);
  for (const int64_t eval_bytes : {0, 1, 100, 4000, 9000, 9010, 13000}) {
    SCOPED_TRACE(eval_bytes);
    fs::remove_all(options_.output);
    options_.inputs.clear();
    Input("a.txt", first);
    Input("empty.txt", "");
    Input("b.txt", second + "\nend\n1");
    options_.eval_bytes = eval_bytes;
    ASSERT_OK_AND_ASSIGN(const PrepareResult result, Prepare(options_));
    const std::string all = first + second + "\nend\n1";
    EXPECT_EQ(result.train.bytes + result.eval.bytes, static_cast<int64_t>(all.size()));
    EXPECT_LE(result.eval.bytes, eval_bytes);
    const std::string train = all.substr(0, static_cast<size_t>(result.train.bytes));
    const std::string eval = all.substr(train.size());
    EXPECT_EQ(Decoded("train"), train);
    EXPECT_EQ(fs::exists(options_.output + "/eval"), eval_bytes > 0);
    if (eval_bytes == 0) continue;
    EXPECT_EQ(Decoded("eval"), eval);
    EXPECT_THAT(storage::ReadFile(options_.output + "/eval.txt"),
                ::plinth::testing::IsOkAndHolds(eval));
    // The longest end of the text that starts with a line and is short enough.
    EXPECT_TRUE(train.back() == '\n' || train.size() == first.size());
    const size_t skipped = static_cast<size_t>(eval_bytes) - eval.size();
    EXPECT_EQ(train.substr(train.size() - skipped).find('\n'),
              skipped == 0 ? std::string::npos : skipped - 1);
  }
}

TEST_F(PrepareTest, BlockSizeDoesNotChangeTokensOfLines) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "line " + std::to_string(i) + ", größe?!\n\n  two\n";
  Input("a.txt", text);
  ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> whole, tokenizer_->Encode(text, {}));
  for (const int64_t block : {64, 100, 1000, 1 << 20}) {
    SCOPED_TRACE(block);
    fs::remove_all(options_.output);
    options_.block_bytes = block;
    ASSERT_OK(Prepare(options_));
    EXPECT_THAT(Tokens("train"), ::plinth::testing::IsOkAndHolds(whole));
  }
}

TEST_F(PrepareTest, AnyBlockSizeKeepsEveryByte) {
  const std::string text = SampleText(300, 4) + std::string(50, 'x') + "\xF0\x9F\x98\x80\x80\x80";
  Input("a.txt", text);
  for (const int64_t block : {1, 2, 3, 4, 5, 7, 11, 16, 39}) {
    fs::remove_all(options_.output);
    options_.block_bytes = block;
    ASSERT_OK(Prepare(options_));
    ASSERT_EQ(Decoded("train"), text) << block;
  }
}

TEST_F(PrepareTest, SeparatorEndsEachDocument) {
  Input("a.txt", "one\n");
  Input("b.txt", "two\nthree\n");
  options_.separator = models::kEndOfText;
  options_.eval_bytes = 6;
  ASSERT_OK_AND_ASSIGN(const PrepareResult result, Prepare(options_));
  EXPECT_EQ(Decoded("train"), "one\n<|endoftext|>two\n");
  EXPECT_EQ(Decoded("eval"), "three\n<|endoftext|>");
  EXPECT_EQ(result.eval.bytes, 6);
  ASSERT_OK_AND_ASSIGN(const auto data, storage::TokenDataset::Open(options_.output + "/train"));
  EXPECT_EQ(data->source_bytes(), 8);
  EXPECT_EQ(data->size(), result.train.tokens);
}

TEST_F(PrepareTest, TheSpellingOfASeparatorInTextStaysText) {
  Input("a.txt", "a <|endoftext|> b\n");
  ASSERT_OK(Prepare(options_));
  ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> tokens, Tokens("train"));
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), *tokenizer_->end_of_text_id()), 0);
}

TEST_F(PrepareTest, TheDatasetNamesItsTokenizer) {
  Input("a.txt", "text\n");
  ASSERT_OK(Prepare(options_));
  ASSERT_OK_AND_ASSIGN(const std::string json, storage::ReadFile(options_.tokenizer));
  ASSERT_OK_AND_ASSIGN(const auto data, storage::TokenDataset::Open(options_.output + "/train"));
  EXPECT_OK(data->CheckTokenizer({.vocab_size = tokenizer_->vocab_size(),
                                  .checksum = storage::Checksum(std::string_view(json))}));
}

TEST_F(PrepareTest, BadInputIsOneErrorAndLeavesNothing) {
  Input("a.txt", "some text\nmore\n");
  ASSERT_EQ(::mkfifo((dir_ + "/pipe").c_str(), 0600), 0);
  ASSERT_OK(storage::WriteFileAtomically(dir_ + "/bad.json", "{\"model\": 1}"));
  struct Case {
    std::function<void(PrepareOptions&)> edit;
    absl::StatusCode code;
    std::string message;
  };
  const auto add = [this](std::string name) {
    return [path = dir_ + name](PrepareOptions& o) { o.inputs.push_back(path); };
  };
  using absl::StatusCode;
  for (const Case& c : {
           Case{add("/none.txt"), StatusCode::kNotFound, "none.txt: cannot open"},
           {add(""), StatusCode::kInvalidArgument, "is not a regular file"},
           {add("/pipe"), StatusCode::kInvalidArgument, "pipe: is not a regular file"},
           {[](auto& o) { o.inputs.clear(); }, StatusCode::kInvalidArgument, "--input: no text"},
           {[](auto& o) { o.tokenizer += "x"; }, StatusCode::kNotFound, "tokenizer.jsonx"},
           {[this](auto& o) { o.tokenizer = dir_ + "/bad.json"; }, StatusCode::kInvalidArgument,
            "bad.json"},
           {[](auto& o) { o.separator = "<eos>"; }, StatusCode::kInvalidArgument,
            "has no special token <eos>"},
           {[](auto& o) { o.eval_bytes = 15; }, StatusCode::kInvalidArgument,
            "--eval_bytes: 15, expected 0 to 14"},
           {[](auto& o) { o.eval_bytes = -1; }, StatusCode::kInvalidArgument, "--eval_bytes: -1"},
           {[](auto& o) { o.eval_bytes = 4; }, StatusCode::kInvalidArgument, "no line starts"},
           {[](auto& o) { o.output = ""; }, StatusCode::kInvalidArgument, "--output"},
           {[this](auto& o) { o.output = dir_; }, StatusCode::kAlreadyExists, "exists; remove it"},
       }) {
    SCOPED_TRACE(c.message);
    PrepareOptions options = options_;
    c.edit(options);
    EXPECT_THAT(Prepare(options), StatusIs(c.code, HasSubstr(c.message)));
    EXPECT_EQ(Leftovers(), (std::vector<std::string>{"bad.json", "pipe"}));
  }
}

TEST_F(PrepareTest, AFullDiskIsSaidAndLeavesNothing) {
  Input("a.txt", SampleText(20000, 5));
  options_.eval_bytes = 6000;
  for (const int64_t capacity : {0, 1000, 9000, 20000}) {
    storage::FaultySyscalls syscalls;
    syscalls.capacity = capacity;
    options_.syscalls = &syscalls;
    EXPECT_THAT(Prepare(options_),
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk full")));
    EXPECT_THAT(Leftovers(), ::testing::IsEmpty());
  }
}

// Every third call that changes the disk fails, and all after it.
TEST_F(PrepareTest, ADyingDiskNeverLeavesAnOutputThatLooksComplete) {
  Input("a.txt", SampleText(3000, 6));
  options_.eval_bytes = 1000;
  absl::StatusOr<PrepareResult> result = absl::UnknownError("not run");
  int64_t fail_at = 0;
  for (; !result.ok(); fail_at += 3) {
    storage::FaultySyscalls syscalls;
    syscalls.fail_at = fail_at;
    options_.syscalls = &syscalls;
    result = Prepare(options_);
    if (result.ok()) break;
    if (fs::exists(options_.output)) {
      // Only the fsync behind the rename may fail with everything in place.
      EXPECT_OK(Tokens("train"));
      EXPECT_OK(Tokens("eval"));
      fs::remove_all(options_.output);
    }
  }
  EXPECT_GT(fail_at, 20);
  EXPECT_EQ(Leftovers(), std::vector<std::string>{"data"});
}

TEST_F(PrepareTest, AKilledRunLeavesNoOutputAndTheNextOneStartsAfresh) {
  Input("a.txt", SampleText(50000, 7));
  options_.eval_bytes = 10000;
  options_.block_bytes = 1000;
  const pid_t child = ::fork();
  if (child == 0) {
    options_.progress = [](int64_t done, int64_t total) {
      if (done > total / 2) ::raise(SIGKILL);
    };
    ::_exit(Prepare(options_).ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(Leftovers(), std::vector<std::string>{".tmp-data"});
  ASSERT_OK(Prepare(options_));
  EXPECT_EQ(Leftovers(), std::vector<std::string>{"data"});
}

TEST_F(PrepareTest, TheProgramReportsAndFailsInOneLine) {
  Input("a.txt", "one\ntwo\n");
  const std::string command = "./tools/prepare/prepare " + options_.inputs[0] +
                              " --tokenizer=" + options_.tokenizer +
                              " --output=" + options_.output + "/ --eval_bytes=4 --json >" + dir_ +
                              "/out 2>" + dir_ + "/err";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(*storage::ReadFile(dir_ + "/out"),
              AllOf(HasSubstr("{\"train_bytes\": 4,"), HasSubstr("\"eval_bytes\": 4,")));
  EXPECT_EQ(*storage::ReadFile(dir_ + "/err"), "");
  EXPECT_NE(std::system(command.c_str()), 0);
  EXPECT_EQ(*storage::ReadFile(dir_ + "/err"),
            "prepare: " + options_.output + ": exists; remove it or choose another --output\n");
}

}  // namespace
}  // namespace plinth::tools
