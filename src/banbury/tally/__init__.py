"""Schema and inference; tables; the tally: the sums of a data set per class and feature."""
