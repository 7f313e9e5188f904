// Columns of a program of services and of its run, by name. `hwsim.families.services.actors.rows` has the same names and numbers.
#pragma once

#include <cstdint>

namespace hwsim::services {

constexpr int64_t FARTHEST = int64_t{1} << 61;  // fs: sums of two such times fit

namespace step {
enum What : int64_t { SERVE, KEEP, BRANCH, FORK, JOIN, ASK, TAKE, GIVE, JUMP, END };
enum Serve { STATION = 1, FLOW, LATENCY, TIME, NUMBER, WAITS_FOR, COST };
enum Keep { DRAW = 1, SLOT };
enum Branch { WAY = 2, WAYS, CACHE };
enum Fork { BRANCHES = 1, MANY, GOES_TO };
enum Ask { ASKED = 1, ASK_KEY, TIMEOUT, RETRIES, AGAIN, WAITS_AT, JITTER_DRAW };
enum Take { LOCK = 1, AFTER };
enum Jump { TO = 1 };
}  // namespace step

// Rows of the same table that steps name.
namespace table {
enum Number { NUMBER_DRAW, NUMBER_SLOT, LINE, LINES, BODY };
enum Way { WAY_TO, WAY_CHOICE, WAY_LIMIT };
enum Happening { HAPPENS_TO, IS_HIT, HIT_RATE, EMPTIED };
enum Cache { CACHE_OF, CACHE_HITS, FIRST_LINE, LAST_LINE, LOOKUPS };  // lookups since it was empty; NONE: it is full
enum Draw { KEY, CODE, FIRST_VALUE, PARAMETERS };
enum Distribution : int64_t { CONSTANT, EXPONENTIAL, LOGNORMAL, UNIFORM, PARETO, VALUES, WHOLE };
constexpr int64_t TABLE_WIDTH = 8, FLOATS_WIDTH = 4;
}  // namespace table

namespace service {
enum Column {
  BASE, WORKERS, LIMIT_OF_LINE, DROPS, CLIENTS, THINK, START, ENTRY, LOAD, RESOURCE_OF, WINDOWS_AT,
  FREE, DOWN, LINE_HEAD, LINE_TAIL, LINE_LENGTH, PARKED, PARKED_TAIL, ARRIVED, ARRIVALS,
  CAME, ENTERED, HERE, MOST, LINE_MOST, REFUSED, FAILED_COUNT, TIMEOUTS, WASTED, DROPPED, ASKED_AGAIN,
  FIRST_CAME, LAST_CAME, ENDED, LAST, LINE_LAST, WINDOW, EDGE, WINDOWS, FIRST_THINK, SERVICE_WIDTH
};
enum Words { AREA = 0, LINE_AREA = 3, STAY = 6 };
constexpr int64_t MOST_WINDOWS = 256;
// Rows behind the services: a load, a lock.
enum Load { REQUESTS, UNTIL, COME };
enum Lock { GROUP, TAKEN, LOCK_HEAD, LOCK_TAIL, ALONG, ALONG_TAIL, ALONG_COUNT, LOCK_RESOURCE };
}  // namespace service

namespace strand {
enum Column {
  LEFT_CHILD, RIGHT_CHILD, SERVICE, ROOT, VISIT, BEGAN, MAIN, CALLER, ATTEMPT, ATTEMPTS, PC, LEFT, SINCE, ALONE, CHOICE, RESOURCE,
  FAILED, GONE, WHY, HELD, LOCK_END, FOLLOWING, JOINED, WORKS, ASKING, ACCESS, REACH, FOLLOWS, ARM_CLASS, STRAND_WIDTH
};
enum Why : int64_t { NO_REASON, WAS_REFUSED, WAS_DROPPED, TIMED_OUT };
}  // namespace strand

// In the heap time, number and row; in the row what it is for and four numbers; and a row that is free.
namespace timer {
enum Column { TIMER_TIME, TIMER_NUMBER, TIMER_ROW, TIMER_KIND, FREE_ROW = 8, TIMER_WIDTH };
enum Kind : int64_t { ARRIVES, ASKS_NOW, LATE, RETRY, BEGINS_WORK, GOES_ON, BEGINS, OVER };
}  // namespace timer

namespace counts {
enum Column {
  SET, FREE_STRANDS, TIMERS, FREE_TIMERS, READY_HEAD, READY, ENDED_AT, ENDED_COUNT, ANSWERS, NOW, RESOURCES,
  SERVICES, STATIONS, CACHES, CACHES_END, WORKED_AT, COUNTS
};
enum List { ENDED_LIST, READY_STRANDS, READY_STEPS, FREE_LIST, RISING, LISTS };
constexpr int64_t ANSWER_WIDTH = 4;  // and what it waited for
}  // namespace counts

namespace station {
enum Kind : int64_t { SHARED, FIFO, TIED, ARMS };
// Of a line and of arms, FIRST_CLASS: the row of words that says what none of its servers is of a whole, one, two ...
// Of tied capacities, SERVERS: how many; FREE: the first of their rows of words. Of arms, LAST_CLASS: the row of what they share.
enum Column {
  KIND, SERVERS, FREE, FIRST_CLASS, LAST_CLASS, LAST, THERE, DUE, HEAD, TAIL, WORKING, DEPTH, CROWDED, LINE_FIRST, WORDS_AT,
  STATION_WIDTH
};
// What its members would draw alone, what is used, members x fs, and what was used x fs in two parts.
enum Words { DRAWN = 0, USED = 3, AREA = 6, BUSY_HIGH = 9, BUSY_LOW = 12, WORDS_WIDTH = 16 };
}  // namespace station

// A class of a station, in a row of the stations. SHARES: its rows of weights.
namespace member {
enum Column { MEMBERS, ROOT, SINCE, CLASS_DUE, CROWD, OWN_DEPTH, CLASS_WORDS, SEEN_ROOT, SHARES };
enum Words { ALONE = 0, WEIGHT = 2, DRAWS = 4, VIRTUAL = 7, PACE = 10, SERVED_ALONE = 12 };  // words: 2, 2, 3, 3, 2, 2
}  // namespace member

// Arms: how many of the first in line they choose from, the key of their choices, and whose access began last. Behind it a row for
// each kind of work: its accesses, fs of one that follows (-1: none does), fs of a way in the mean, the key of its ways, its rows of
// floats (the curve; bend, cylinders, turn, settle; fs for each second of a way), and what part of its way an access takes, by how
// many are there, with the largest such number.
namespace arm {
enum Shared { SEEN, CHOICES_KEY, LATEST };
enum Column { ACCESSES, FOLLOWING_TIME, MEAN_WAY, WAYS_KEY, CURVE, SCALES, MOST_THERE };
}  // namespace arm

// A tied capacity: what is left of it, what those draw whose pace still rises, and whether it is full.
namespace tied {
enum Words { LEFT = 0, LOAD = 3, IS_FULL = 6 };
}  // namespace tied

}  // namespace hwsim::services
