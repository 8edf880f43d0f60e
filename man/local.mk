# Lists of man.
