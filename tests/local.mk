# Tests of the whole tree, and the tools that make lint runs.
PLAIN_TESTS += %D%/layers.t %D%/budget.t %D%/pathless.t %D%/symbols.t %D%/readme.t \
	%D%/install.t %D%/man.t %D%/configure.t %D%/quickstart.t %D%/clean-tree.t \
	%D%/locks.t %D%/commands.t %D%/packaging.t
TESTS += $(PLAIN_TESTS)
EXTRA_DIST += %D%/layers.t %D%/budget.t %D%/pathless.t %D%/symbols.t %D%/readme.t \
	%D%/install.t %D%/man.t %D%/configure.t %D%/quickstart.t %D%/clean-tree.t \
	%D%/locks.t %D%/commands.t %D%/packaging.t %D%/tap.sh %D%/mutate.sh %D%/gate %D%/layers.awk %D%/layers.txt %D%/budget.awk %D%/symbols.txt \
	%D%/lint %D%/cppcheck.txt
include tests/fuzz/local.mk
# Packages: built and used by tests/packages, by hand. debian/ is no part of a tarball, of which
# packages are made together with it.
EXTRA_DIST += %D%/packages packaging/weft.spec packaging/spack/package.py
