# Pages for who uses Weft; docs.t and choices.t hold them against the code.
PLAIN_TESTS += %D%/docs.t %D%/choices.t
EXTRA_DIST += %D%/docs.t %D%/choices.t %D%/troubleshooting.md %D%/moving.md \
	%D%/algorithms.md %D%/protocols.md
