"""The array types that the algorithms are written in, defined once.

Everything below the Spark layer works on whole NumPy arrays. A name says what an array holds, not
how it is stored: `Rows` are positions in a batch, a `Bitmap` has one bit for each query.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Positions of rows in a batch, ascending.
Rows = IntArray
#: One bit for each query (or clause, or operator), 64 to a word.
Bitmap = NDArray[np.uint64]
#: A bitmap for each row of a batch: one line of words for each row.
Bitmaps = NDArray[np.uint64]
#: Key values as 64-bit codes: equal values have equal codes, and nearly always vice versa.
Codes = NDArray[np.uint64]
