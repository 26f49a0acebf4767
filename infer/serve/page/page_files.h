// The web page's files, compiled in: a server needs no files beside its binary.
#ifndef PLINTH_INFER_SERVE_PAGE_PAGE_FILES_H_
#define PLINTH_INFER_SERVE_PAGE_PAGE_FILES_H_

#include <span>
#include <string_view>

namespace plinth::infer {

struct PageFile {
  std::string_view name;  // "app.js"
  std::string_view content_type;
  std::string_view contents;
};

std::span<const PageFile> PageFiles();

}  // namespace plinth::infer

#endif  // PLINTH_INFER_SERVE_PAGE_PAGE_FILES_H_
