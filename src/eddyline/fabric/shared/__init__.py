"""The shared eddy (CACQ): one pass over the rows of a stream for all queries over it."""
