"""protoc for C++, with one import root: `import "plinth/config/run.proto"`.

Bazel 4.2.3's own proto rules need three command-line flags to use a system protoc;
a foreign workspace would have to repeat them. This rule needs none.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

ProtoSources = provider(
    doc = "What an importing proto_cc_library needs.",
    fields = {
        "files": "depset of .proto files, transitive",
        "roots": "depset of directories that stand for `plinth/`, transitive",
    },
)

def _impl(ctx):
    package = ctx.label.package
    root = (ctx.label.workspace_root or ".")
    out_dir = ctx.bin_dir.path + ("/" + ctx.label.workspace_root if ctx.label.workspace_root else "") + "/" + package + "/_proto"

    hdrs, srcs, imports = [], [], []
    for src in ctx.files.srcs:
        stem = "_proto/plinth/%s/%s" % (package, src.basename[:-len(".proto")])
        kinds = [".pb"] + ([".grpc.pb"] if ctx.attr.grpc else [])
        hdrs += [ctx.actions.declare_file(stem + k + ".h") for k in kinds]
        srcs += [ctx.actions.declare_file(stem + k + ".cc") for k in kinds]
        imports.append("plinth/%s/%s" % (package, src.basename))

    files = depset(ctx.files.srcs, transitive = [d[ProtoSources].files for d in ctx.attr.deps])
    roots = depset([root], transitive = [d[ProtoSources].roots for d in ctx.attr.deps])

    args = ctx.actions.args()
    args.add_all(roots, format_each = "-Iplinth=%s")
    args.add("-I/usr/include")
    args.add("--cpp_out=" + out_dir)
    if ctx.attr.grpc:
        args.add("--plugin=protoc-gen-grpc=" + ctx.file._plugin.path)
        args.add("--grpc_out=" + out_dir)
    args.add_all(imports)
    ctx.actions.run(
        executable = ctx.file._protoc,
        arguments = [args],
        inputs = files,
        tools = [ctx.file._plugin] if ctx.attr.grpc else [],
        outputs = hdrs + srcs,
        mnemonic = "ProtocCpp",
        progress_message = "Generating C++ for " + str(ctx.label),
    )

    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features + ["layering_check"],
    )
    deps = [d[CcInfo] for d in ctx.attr.deps + [ctx.attr._protobuf] + ([ctx.attr._grpc] if ctx.attr.grpc else [])]
    compilation, objects = cc_common.compile(
        name = ctx.label.name,
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = toolchain,
        user_compile_flags = ["-std=c++20", "-w"],
        srcs = srcs,
        public_hdrs = hdrs,
        system_includes = [out_dir],
        compilation_contexts = [d.compilation_context for d in deps],
    )
    linking, _ = cc_common.create_linking_context_from_compilation_outputs(
        name = ctx.label.name,
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = toolchain,
        compilation_outputs = objects,
        linking_contexts = [d.linking_context for d in deps],
    )
    return [
        DefaultInfo(files = depset(hdrs + srcs)),
        CcInfo(compilation_context = compilation, linking_context = linking),
        ProtoSources(files = files, roots = roots),
    ]

proto_cc_library = rule(
    implementation = _impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".proto"], mandatory = True),
        "deps": attr.label_list(providers = [CcInfo, ProtoSources]),
        "grpc": attr.bool(default = False),
        "_protobuf": attr.label(default = "//third_party/protobuf:protobuf"),
        "_grpc": attr.label(default = "//third_party/grpc:grpc"),
        "_protoc": attr.label(default = "@system_protoc//:protoc", allow_single_file = True, cfg = "exec"),
        "_plugin": attr.label(default = "@system_grpc_plugin//:grpc_cpp_plugin", allow_single_file = True, cfg = "exec"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)
