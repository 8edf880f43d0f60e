# Manual pages, written by hand in mdoc. tests/man.t compares them with what they describe.
dist_man_MANS += %D%/weft.1 %D%/weft.3 %D%/fi_weft.7
