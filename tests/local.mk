# Lists of tests.
