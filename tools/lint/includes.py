#!/usr/bin/env python3
"""Every #include names a header of the target itself or of one of its direct deps.

    bazel query --output=xml 'kind(rule, //...)' | tools/lint/includes.py

Prints one line per violation; exit code 1 if there is any. Clang's layering_check says the
same of what the sanitizer builds compile; this reads every target, tests too, in a second,
and knows the headers of the system's libraries, for which Clang has no module map.
"""

import re
import sys
import xml.etree.ElementTree

# Which alias package owns a library's headers.
THIRD_PARTY = [
    (re.compile(pattern), "//third_party/" + package)
    for pattern, package in [
        (r"absl/", "absl"),
        (r"google/protobuf/", "protobuf"),
        (r"(grpc|grpcpp)/", "grpc"),
        (r"(gtest|gmock)/", "gtest"),
        (r"benchmark/", "benchmark"),
        (r"(oneapi/)?dnnl", "onednn"),
        (r"hwy/", "highway"),
        (r"hwloc", "hwloc"),
        (r"boost/", "boost"),
        (r"pcre2\.h", "pcre2"),
        (r"utf8proc\.h", "utf8proc"),
        (r"xxhash\.h", "xxhash"),
        (r"prometheus/", "prometheus"),
        (r"(cuda|cublas)\w*\.h", "cuda"),
    ]
]
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
CHECKED = ("cc_library", "cc_binary", "cc_test", "cuda_library")
SOURCE = re.compile(r"\.(h|cc|cu)$")


def labels(rule, attribute):
    return [item.get("value") for item in rule.findall(f"./list[@name='{attribute}']/label")]


def path_of(label):
    package, _, name = label[2:].partition(":")
    return f"{package}/{name}"


def header_names(rule):
    """What others may include from this rule."""
    if rule.get("class") == "proto_cc_library":
        stems = ["plinth/" + path_of(source)[: -len(".proto")] for source in labels(rule, "srcs")]
        return {stem + kind for stem in stems for kind in (".pb.h", ".grpc.pb.h")}
    return {"plinth/" + path_of(label) for label in labels(rule, "hdrs") + labels(rule, "textual_hdrs")}


def missing_deps(rule, headers, owners):
    own = {"plinth/" + path_of(label) for label in labels(rule, "srcs")} | headers[rule.get("name")]
    deps = labels(rule, "deps")
    if rule.get("class") == "cuda_library":  # nvcc brings its own runtime
        deps.append("//third_party/cuda:cudart_static")
    for dep in deps:
        own |= headers.get(dep, set())
    for source in labels(rule, "srcs") + labels(rule, "hdrs") + labels(rule, "textual_hdrs"):
        if not source.startswith("//") or not SOURCE.search(source):
            continue
        try:
            with open(path_of(source), encoding="utf-8") as file:
                names = INCLUDE.findall(file.read())
        except FileNotFoundError:
            continue  # generated
        for name in names:
            if name.startswith("plinth/"):
                if name not in own:
                    yield source, name, " or ".join(owners.get(name, ["no target"]))
                continue
            for pattern, package in THIRD_PARTY:
                if pattern.match(name) and not any(dep.startswith(package + ":") for dep in deps):
                    yield source, name, package


def main():
    rules = xml.etree.ElementTree.parse(sys.stdin).getroot().findall("rule")
    headers = {rule.get("name"): header_names(rule) for rule in rules}
    for rule in rules:
        if rule.get("class") == "alias":
            headers[rule.get("name")] = headers.get(rule.find("./label[@name='actual']").get("value"), set())
    owners = {}
    for target, names in headers.items():
        for name in names:
            owners.setdefault(name, []).append(target)
    checked = failures = 0
    for rule in rules:
        # third_party itself is where a library's headers come from.
        if rule.get("class") not in CHECKED or rule.get("name").startswith("//third_party/"):
            continue
        checked += 1
        for source, name, owner in missing_deps(rule, headers, owners):
            failures += 1
            print(f"{rule.get('name')}: {path_of(source)} includes {name}, but deps lack {owner}")
    print(f"{checked} targets, {failures} headers that no direct dependency owns")
    return 1 if failures or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
