# Pages for who uses Weft; docs.t holds them against the code.
PLAIN_TESTS += %D%/docs.t
EXTRA_DIST += %D%/docs.t %D%/troubleshooting.md %D%/moving.md
