# SPDX-License-Identifier: BSD-2-Clause
# Recipe for Spack: into a repository of recipes as packages/weft/package.py, then
# "spack install weft" after "spack develop -p FOLDER weft@main".

from spack.package import *


class Weft(AutotoolsPackage):
    """Collective operations over libfabric, a provider of libfabric for shared memory and
    RDMA devices, and a command that starts, measures and checks."""

    license("BSD-2-Clause")

    version("main", branch="main")

    variant("hwloc", default=True, description="Cores, NUMA nodes and devices by hwloc")
    variant("verbs", default=True, description="Other hosts over RDMA devices")
    variant("crypto", default=True, description="A key for what other hosts may send")
    variant("pmix", default=True, description="Ranks that PMIx started find each other")
    variant("cuda", default=False, description="Kernels for GPUs, made by nvcc")

    depends_on("c", type="build")
    depends_on("autoconf@2.71:", type="build")
    depends_on("automake@1.16:", type="build")
    depends_on("libtool", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("libfabric@1.17:")
    depends_on("hwloc@2:", when="+hwloc")
    depends_on("rdma-core", when="+verbs")
    depends_on("openssl@3:", when="+crypto")
    depends_on("pmix@3:", when="+pmix")
    depends_on("cuda@12:", when="+cuda")

    def autoreconf(self, spec, prefix):
        Executable("autoreconf")("-fi")

    def configure_args(self):
        args = ["--with-libfabric=" + self.spec["libfabric"].prefix, "--with-nvptx=no"]
        # Name of the variant, of configure's option, of the package.
        for variant, option, package in (
            ("hwloc", "hwloc", "hwloc"),
            ("verbs", "verbs", "rdma-core"),
            ("crypto", "libcrypto", "openssl"),
            ("pmix", "pmix", "pmix"),
        ):
            if self.spec.satisfies("+" + variant):
                args.append("--with-{0}={1}".format(option, self.spec[package].prefix))
            else:
                args.append("--with-{0}=no".format(option))
        if self.spec.satisfies("+cuda"):
            args.append("--with-nvcc=" + join_path(self.spec["cuda"].prefix.bin, "nvcc"))
        else:
            args.append("--with-nvcc=no")
        return args

    def setup_run_environment(self, env):
        env.prepend_path("FI_PROVIDER_PATH", join_path(self.prefix.lib, "libfabric"))
