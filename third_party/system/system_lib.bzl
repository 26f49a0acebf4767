"""Exposes one Debian -dev package as an external repository.

Bazel does not notice when a header under /usr/include changes, so the probed
version is part of the generated BUILD file (SYSTEM_VERSION): a new version
changes the repository and with it every action key that depends on it.
"""

def _run(rctx, args):
    r = rctx.execute(args)
    return r.stdout.strip() if r.return_code == 0 else None

def _impl(rctx):
    deb = rctx.attr.deb
    root = rctx.attr.root
    hint = "\n\n  @%s needs Debian package '%s': run  apt-get install -y --no-install-recommends %s\n" % (rctx.name, deb, deb)
    for h in rctx.attr.probe_headers:
        if not rctx.path(root + "/include/" + h).exists:
            fail("\n\n*** missing header %s/include/%s%s" % (root, h, hint))
    for f in rctx.attr.probe_files:
        if not rctx.path(f).exists:
            fail("\n\n*** missing file %s%s" % (f, hint))
    libdirs = [d for d in rctx.attr.lib_dirs]
    for l in rctx.attr.probe_libs:
        if not any([rctx.path(d + "/" + l).exists for d in libdirs]):
            fail("\n\n*** missing library %s in %s%s" % (l, libdirs, hint))
    version = None
    if rctx.attr.pkg_config:
        version = _run(rctx, ["pkg-config", "--modversion", rctx.attr.pkg_config])
    elif rctx.attr.version_header:
        text = rctx.read(root + "/include/" + rctx.attr.version_header)
        parts = []
        for key in rctx.attr.version_macros:
            for line in text.split("\n"):
                w = [x for x in line.replace("\t", " ").split(" ") if x]
                if len(w) >= 3 and w[0] == "#define" and w[1] == key:
                    parts.append(w[2].strip("\""))
                    break
        version = ".".join(parts)
    else:
        version = (_run(rctx, ["dpkg-query", "-W", "-f=${Version}", deb]) or "").split("-")[0].split("+")[0]
    if not version:
        fail("\n\n*** cannot determine the version of %s%s" % (rctx.name, hint))
    if rctx.attr.versions and not any([version == v or version.startswith(v + ".") for v in rctx.attr.versions]):
        fail("\n\n*** %s has version %s, expected one of %s%s" % (rctx.name, version, rctx.attr.versions, hint))
    for t, dst in rctx.attr.symlinks.items():
        rctx.symlink(t, dst)
    rctx.file("BUILD.bazel", "package(default_visibility = [\"//visibility:public\"])\n" +
                             "SYSTEM_VERSION = %r\n" % version + rctx.attr.build)

system_lib = repository_rule(
    implementation = _impl,
    local = True,
    configure = True,
    attrs = {
        "deb": attr.string(mandatory = True),
        "root": attr.string(default = "/usr"),
        "lib_dirs": attr.string_list(default = ["/usr/lib/x86_64-linux-gnu", "/usr/lib"]),
        "probe_headers": attr.string_list(),
        "probe_libs": attr.string_list(),
        "probe_files": attr.string_list(doc = "absolute paths that must exist"),
        "pkg_config": attr.string(),
        "version_header": attr.string(),
        "version_macros": attr.string_list(),
        "versions": attr.string_list(),
        "symlinks": attr.string_dict(),
        "build": attr.string(mandatory = True),
    },
)
