#include "plinth/infer/serve/page/page_files.h"

namespace plinth::infer {
namespace {

constexpr PageFile kFiles[] = {
    {
        "index.html",
        "text/html; charset=utf-8",
#include "infer/serve/page/index.html.inc"
    },
    {
        "style.css",
        "text/css; charset=utf-8",
#include "infer/serve/page/style.css.inc"
    },
    {
        "app.js",
        "text/javascript; charset=utf-8",
#include "infer/serve/page/app.js.inc"
    },
    {
        "chart.js",
        "text/javascript; charset=utf-8",
#include "infer/serve/page/chart.js.inc"
    },
    {
        "talk.js",
        "text/javascript; charset=utf-8",
#include "infer/serve/page/talk.js.inc"
    },
};

}  // namespace

std::span<const PageFile> PageFiles() { return kFiles; }

}  // namespace plinth::infer
