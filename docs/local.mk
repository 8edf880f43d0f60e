# Pages for who uses Weft; the tests beside them hold them against the code.
PLAIN_TESTS += %D%/docs.t %D%/choices.t %D%/sessions/sessions.t
EXTRA_DIST += %D%/docs.t %D%/choices.t %D%/troubleshooting.md %D%/moving.md \
	%D%/algorithms.md %D%/protocols.md \
	%D%/sessions/README.md %D%/sessions/capture %D%/sessions/sessions.md \
	%D%/sessions/sessions.t
