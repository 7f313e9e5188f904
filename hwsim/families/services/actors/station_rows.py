"""Column numbers of stations and of their words, as in core/src/services/rows.h."""

from __future__ import annotations

SHARED, FIFO, TIED, ARMS = range(4)  # kinds of stations
# Some columns depend on the kind. FIFO and ARMS: FIRST_CLASS is the first of the rows of words with the utilization (of FULL) of
# 0, 1, 2, ... busy servers. ARMS: LAST_CLASS is the row with the data of all arms. TIED: SERVERS is the number of capacities, and
# FREE the first of their rows of words.
(KIND, SERVERS, FREE, FIRST_CLASS, LAST_CLASS, LAST, THERE, DUE, HEAD, TAIL, WORKING, DEPTH, CROWDED, LINE_FIRST, WORDS_AT,
 STATION_WIDTH) = range(16)  # fmt: skip
# columns of a row of words: total demand of the members, utilization, members x fs, and utilization x fs in two parts
DRAWN, USED, AREA, BUSY_HIGH, BUSY_LOW = 0, 3, 6, 9, 12
WORDS_WIDTH = 16
CROWD = 4  # column of a class: first of its rows of words by queue depth
