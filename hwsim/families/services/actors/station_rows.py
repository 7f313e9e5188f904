"""Columns of the stations of a run, and of their words: the names of core/src/services/rows.h that Python needs, too."""

from __future__ import annotations

SHARED, FIFO, TIED, ARMS = range(4)  # kinds
# Of a line and of arms, FIRST_CLASS: the row of words that says what none of its servers is of FULL, one, two ...
# Of tied capacities, SERVERS: how many; FREE: the first of their rows of words. Of arms, LAST_CLASS: the row of what they share.
(KIND, SERVERS, FREE, FIRST_CLASS, LAST_CLASS, LAST, THERE, DUE, HEAD, TAIL, WORKING, DEPTH, CROWDED, LINE_FIRST, WORDS_AT,
 STATION_WIDTH) = range(16)  # fmt: skip
# words: what its members would draw alone, what is used, members x fs, and what was used x fs in two parts
DRAWN, USED, AREA, BUSY_HIGH, BUSY_LOW = 0, 3, 6, 9, 12
WORDS_WIDTH = 16
CROWD = 4  # of a class: its rows of words by the size of the crowd
