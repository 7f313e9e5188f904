"""Names of the columns of the demands in flight: of the tables in `flows.Flows`."""

# A class. TOUCHED: whether a member came or went. BOUND: the capacity that holds it back, or FREE, or NOBODY.
# STATE: 2 x tick while it rises, 2 x tick + 1 once its pace is found. HOLDER: as BOUND, of what is being tried.
# MOVED, ASKED: the tick or the round at which it came into a list.
from __future__ import annotations

MEMBERS, ROOT, BOUND, TOUCHED, STATE, FIRST_PAIR, LAST_PAIR, FIRST_DRAW, LAST_DRAW, HOLDER, MOVED, ASKED = range(12)
FREE, NOBODY = -1, -2  # nothing holds it back; it has no member
ALONE, FOUND, OFFSET = 0, 2, 4  # two words, two, three
# A capacity. FILLED: whether it was full in the last solution. SEEN, STAMPED, WAITING, SPOILT: the tick of an event.
BINDING, FILLED, FIRST_USER, USERS, RISERS, SEEN, STAMPED, WAITING, SPOILT = range(9)
# what the active demands would draw alone, what they hold, the level that was noted last, the level before this instant;
# three words, three, two, two
DRAWN, HELD, NOTED, BEFORE = 0, 3, 6, 8
# what those leave that stop below its level, what the others draw at pace 1, the least pace alone; three words, two, two
LEFT, LOAD, LEAST = 0, 3, 5
PAIR_CAPACITY, PAIR_CLASS, USER_PLACE, WEIGHT = range(4)  # the last but one: in `users`, or -1; the last: of one member
# A user. MANY: members counted in the sums.
USER_CLASS, USER_PAIR, KIND_OF_USER, MANY, OWN_WEIGHT = range(5)
# OTHER: of a class of two capacities with one member that rises at one, the other (and its weight there); of a class that stops
# below, the capacity that holds it back; ONLY: it crosses no other; SEVERAL: look at the
# class; TIED: it rises at several.
OTHER, OTHER_WEIGHT = range(2)
ONLY, SEVERAL, TIED = -1, -2, -3
BELOW, RISES, TIES, ALONE_BELOW = range(4)  # stops below, at another capacity; does not; and at another too; stops below, free
SINCE, DUE, DUE_PLACE, FIRST, MARKED = range(5)  # of a group; FIRST: the class that ends first
SERVICE, KEY = 0, 3  # of a group: what its members receive; at which the first ends; three words each
DRAW, HOLD = 0, 3  # of a draw, three words each
LEFT_CHILD, RIGHT_CHILD = range(2)  # of an op: the members of a class are a skew heap
(TOUCHES, DUES, SOLVES, CHANGES, QUEUED, MORE, TICK, RISING, REFILLS, STAMPS, SPOILS, MOVES, MARKS, ROUND, DOUBTS, WAITS,
 TRIES) = range(17)  # fmt: skip
(TOUCHED_CLASSES, REACHED, STOPPING, MENDED, CHANGED, REFILLED, STAMPED_ONES, SPOILT_ONES, MOVED_ONES, MARKED_ONES, SUSPECTS,
 ASKED_ONES, SCARCE) = range(13)  # lists  # fmt: skip
