# Conformance: upstream's fabtests (fabtests/upstream, run by hand and by quickstart check,
# since it needs the network once) and the provider's own black-box tests.
EXTRA_DIST += %D%/README.md %D%/upstream %D%/exclude/weft \
	%D%/lib/inside.sh %D%/lib/lists.sh %D%/lib/obtain.sh %D%/lib/pair.sh \
	%D%/lib/say.sh %D%/lib/script.sh %D%/lib/table.sh

EXTRA_DIST += %D%/tests/upstream.t
TESTS += %D%/tests/upstream.t
