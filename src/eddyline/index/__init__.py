"""Indexes over the rows of a SteM: which rows may equal a probe in the columns it gives."""
