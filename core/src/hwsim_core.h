// What hwsim calls: plain C, on columns of numbers that Python owns.
//
// A whole number of several words has the least word first. Times are femtoseconds. Nothing here calls Python, keeps a pointer
// into a column after it has returned, or shares anything but the handle it is given: calls may run in threads of their own.
#pragma once

#include <stdint.h>

#if defined(_WIN32)
#define HWSIM_CORE_API extern "C" __declspec(dllexport)
#else
#define HWSIM_CORE_API extern "C" __attribute__((visibility("default")))
#endif

// What every kernel returns.
enum hwsim_status {
  HWSIM_DONE = 0,
  HWSIM_TOO_FAR = 1,    // a time or a sum would leave its words: Python's engine, whose integers have no end, is to do it
  HWSIM_NO_MEMORY = 2,
  HWSIM_MORE = 3,       // room or numbers are wanted before it can go on, or the patience is over
};

// patience: nanoseconds of a call after which it answers HWSIM_MORE and wants to be called again, so that Python hears
// interrupts; 0: each call does the least.

// For tests, on numbers of three words: one / two (two words wide at the most; 0 where two is), one + two x three (two words of
// three), one - two x three (two words of two, one of three), one < two; three words each, one after the other.
HWSIM_CORE_API int32_t hwsim_words(const uint64_t* one, const uint64_t* two, const uint64_t* three, uint64_t* found);

// Start and end of every op that can start; -1 for the others. Ops wait for nothing but ends of others.
// first: ops + 1 places in `next`, of the successors of each op. missing: predecessors of each op.
HWSIM_CORE_API int32_t hwsim_longest_path(int64_t ops, const int64_t* first, const int32_t* next, const int32_t* missing,
                                          const int64_t* fixed, int64_t* start, int64_t* end);

// Demands that compete for capacities, and after a replay the notes on their paces.
typedef struct hwsim_flows hwsim_flows;

// alone: two words of each class. first_pair: classes + 1 places in the columns of pairs (capacity, number of the weight).
// weight_words: two words each. first_draw: as first_pair, of draws (capacity, number of the amount); amount_words: what one member
// draws alone with what it holds, and what it holds, three words each. unit: a capacity / 2^53, two words. margins: of levels (two
// words; 0: they are unknown, and the last stops are never tried), and of what is left (three words), for roundings to make no
// difference. nearly: leading bits in which paces agree that are nearly equal. keeps_levels: 1: levels are noted. ops: so many, in
// ascending order, are metered: what they receive is summed up. first_clock: as first_pair, of clocks that change: eight words each,
// the capacity, then shift, most, rest (two) and own (three) of most x part x 2^shift / (rest x part + own), the highest pace of a
// member where `part` / 2^53 of the capacity is there.
HWSIM_CORE_API int32_t hwsim_flows_new(int64_t classes, const uint64_t* alone, const int64_t* first_pair,
                                       const int32_t* pair_capacity, const int32_t* pair_weight, int64_t weights,
                                       const uint64_t* weight_words, const int64_t* first_draw, const int32_t* draw_capacity,
                                       const int32_t* draw_amount, int64_t amounts, const uint64_t* amount_words,
                                       int64_t capacities, const uint64_t* unit, const uint64_t* margins, int64_t nearly,
                                       int64_t keeps_levels, int64_t metered, const int32_t* ops, const int64_t* first_clock,
                                       const uint64_t* clock_words, hwsim_flows** flows);

// Play ops. flow: fs that an op of a class takes alone, after its fixed time; flow_class: -1 if it is of none. take, give: the
// pool of which it takes and gives back a server, or -1. granted: the op that gave it its server, -1 if none did; without pools
// these three are empty. starts: class (-1: none) and fs alone of what is between an op's fixed time and its flow; drawing: when
// that was over, -1 at first; starting: rows of both, ops or 0. An op without class has no flow after it. change_rows: fs in order,
// capacity and part of it (of 2^53) from then on; taken: so many are done. After HWSIM_MORE it is called with the same columns, and
// if all changes are taken with those that follow, until it answers something else. At INT64_MAX is a last change, which never comes.
HWSIM_CORE_API int32_t hwsim_replay(int64_t ops, const int64_t* first, const int32_t* next, const int32_t* missing,
                                    const uint8_t* joins, const int64_t* fixed, const int64_t* flow, const int32_t* flow_class,
                                    const int32_t* take, const int32_t* give, int64_t pools, const int64_t* servers,
                                    int64_t starting, const int64_t* starts, hwsim_flows* flows, int64_t* start, int64_t* end,
                                    int64_t* granted, int64_t* drawing, int64_t patience, int64_t changes,
                                    const int64_t* change_rows, int64_t* taken);

// Notes of a replay, which live as long as the handle. sizes: rows of bounds and levels; then how often shares were found.
// columns: of bounds fs (int64), class, what holds it back from then on (int32 each; -1: nothing, -2: it has no member,
// -3 - capacity: that does, at nearly its pace alone); of levels fs (int64), capacity (int32), the level at which it is full from
// then on (two words); of the metered ops what they received, pace x fs, in three words, their paces at the end in two, and the
// fs at which they began to flow.
HWSIM_CORE_API int32_t hwsim_flows_notes(const hwsim_flows* flows, int64_t* sizes, const void** columns);

HWSIM_CORE_API int32_t hwsim_flows_free(hwsim_flows* flows);

// A program of services and its run, in columns that Python owns and makes longer between calls; `src/services/rows.h` says what
// the rows are. strand_rows: of strands, targets, slots, waits, and the length of a list.
typedef struct hwsim_services {
  int64_t* table;     // steps, and what they name
  double* floats;
  int64_t* services;  // behind them loads and locks
  int64_t* stations;  // behind them classes
  uint64_t* words;
  int64_t* counts;
  int64_t* strands;
  uint64_t* targets;  // service of its class at which each ends, three words
  double* slots;
  int64_t* waits;     // by what for, then the locks held
  int64_t* lists;
  int64_t* timers;
  int64_t* answers;
  int64_t* arrivals;  // instants of each entry, on the clock of the run
  int64_t strand_rows, slot_width, wait_width, answer_rows, arrival_width;
} hwsim_services;

// Set the first timers of an entry: its clients think, or its first request comes.
HWSIM_CORE_API int32_t hwsim_services_begin(const hwsim_services* columns, int64_t entry);

// Set the timer at which something begins or is over: a row of the table.
HWSIM_CORE_API int32_t hwsim_services_event(const hwsim_services* columns, int64_t time, int64_t happening, int64_t begins);

// Let the clock begin anew at this instant; arrivals, and until when requests come, are the caller's to move.
HWSIM_CORE_API int32_t hwsim_services_rebase(const hwsim_services* columns);

// Play all instants before a limit. margin: room that one strand may need.
HWSIM_CORE_API int32_t hwsim_services_play(const hwsim_services* columns, int64_t limit, int64_t margin, int64_t patience);
