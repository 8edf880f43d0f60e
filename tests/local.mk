# Tests of the whole tree, and the tools that make lint runs.
EXTRA_DIST += %D%/lint %D%/cppcheck.txt
