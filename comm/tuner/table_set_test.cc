#include "plinth/comm/tuner/table_set.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/status_matchers.h"

namespace plinth::comm {
namespace {

using ::plinth::testing::StatusIs;
using ::testing::HasSubstr;

std::string Write(const std::string& name, const std::string& text) {
  const std::string path = absl::StrCat(std::getenv("TEST_TMPDIR"), "/", name);
  std::ofstream(path) << text;
  return path;
}

std::string Measured(const char* transport, double alpha_us) {
  CostTable table = DefaultTable(transport);
  table.model.local.alpha_us = alpha_us;
  return "# measured\n" + FormatTable(table);
}

TEST(TableSet, FilesStandInForTheTransportsTheyName) {
  const std::string files =
      absl::StrCat(Write("tcp", Measured("tcp", 7)), ",", Write("shm", Measured("shm", 3)));
  ASSERT_OK_AND_ASSIGN(const TableSet set, TableSet::Load(files));
  EXPECT_EQ(set.For("tcp").model.local.alpha_us, 7);
  EXPECT_EQ(set.For("shm").model.local.alpha_us, 3);
  EXPECT_EQ(set.For("mpi"), DefaultTable("mpi"));
  ASSERT_OK_AND_ASSIGN(const TableSet none, TableSet::Load(""));
  EXPECT_EQ(none.For("tcp"), DefaultTable("tcp"));
}

TEST(TableSet, HashTellsValuesApartAndNothingElse) {
  const std::string tcp = Write("a", Measured("tcp", 7)), shm = Write("b", Measured("shm", 3));
  const std::string other = Write("c", Measured("tcp", 8));
  const auto hash = [](const std::string& files) { return TableSet::Load(files)->Hash(); };
  EXPECT_EQ(hash(tcp + "," + shm), hash(shm + "," + tcp));
  EXPECT_EQ(hash(tcp), hash(Write("d", "# another comment\n\n" + Measured("tcp", 7))));
  EXPECT_NE(hash(tcp), hash(other));
  EXPECT_NE(hash(tcp), hash(""));
}

TEST(TableSet, ErrorsNameTheFile) {
  const auto refused = [](const std::string& files, absl::StatusCode code, const char* what) {
    EXPECT_THAT(TableSet::Load(files).status(), StatusIs(code, HasSubstr(what))) << files;
  };
  const std::string good = Write("good", Measured("tcp", 7));
  refused("/nowhere/table", absl::StatusCode::kNotFound, "/nowhere/table: ");
  EXPECT_FALSE(TableSet::Load(std::getenv("TEST_TMPDIR")).ok());
  refused(Write("bad", "nonsense"), absl::StatusCode::kInvalidArgument, "/bad: line 1: want");
  refused(Write("empty", ""), absl::StatusCode::kInvalidArgument, "/empty: no line");
  refused(Write("long", std::string(100000, '#')), absl::StatusCode::kInvalidArgument,
          "/long: more than 65536 bytes");
  refused(good + "," + good, absl::StatusCode::kInvalidArgument, "a second table for tcp");
}

}  // namespace
}  // namespace plinth::comm
