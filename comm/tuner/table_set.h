// The tables that a launch chooses algorithms by: those of files, and built in ones for the rest.
#ifndef PLINTH_COMM_TUNER_TABLE_SET_H_
#define PLINTH_COMM_TUNER_TABLE_SET_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "plinth/comm/tuner/table.h"

namespace plinth::comm {

class TableSet {
 public:
  // Built in ones only.
  TableSet() = default;
  // Of files that hold one table each, separated by commas; no text is no file. Errors name the
  // file: kNotFound or kUnavailable when it cannot be read, ParseTable's, and kInvalidArgument for
  // a second table of one transport or a file too long to be a table.
  static absl::StatusOr<TableSet> Load(std::string_view files);

  CostTable For(std::string_view transport) const;
  // Equal for equal values of equal transports, on all hosts: what ranks compare.
  uint64_t Hash() const;

 private:
  std::map<std::string, CostTable, std::less<>> tables_;  // by transport
};

}  // namespace plinth::comm

#endif  // PLINTH_COMM_TUNER_TABLE_SET_H_
