# Lists of fabtests.
