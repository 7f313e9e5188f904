// What hwsim calls: plain C, on columns of numbers that Python owns.
//
// A whole number of several words has the least word first. Times are femtoseconds. Nothing here calls Python, keeps a
// pointer into a column after it has returned, or shares anything between two calls (but for what a handle stands for): each may
// run in a thread of its own.
#pragma once

#include <stdint.h>

#if defined(_WIN32)
#define HWSIM_CORE_API extern "C" __declspec(dllexport)
#else
#define HWSIM_CORE_API extern "C" __attribute__((visibility("default")))
#endif

// One more whenever a declaration below changes, comes or goes; `hwsim.engine.core.ABI` is the same number.
#define HWSIM_CORE_ABI 2

HWSIM_CORE_API int32_t hwsim_core_abi(void);

// What a kernel returns that can fail.
enum hwsim_status {
  HWSIM_DONE = 0,
  HWSIM_TOO_FAR = 1,    // a time or a sum would leave its words: Python's engine, whose integers have no end, is to do it
  HWSIM_NO_MEMORY = 2,
};

// Start and end of every op that can start; -1 for the others. Ops wait for nothing but ends of others.
// first: ops + 1 places in `next`, of the successors of each op. missing: predecessors of each op.
HWSIM_CORE_API int32_t hwsim_longest_path(int64_t ops, const int64_t* first, const int32_t* next, const int32_t* missing,
                                          const int64_t* fixed, int64_t* start, int64_t* end);

// A served model without a clock, played in pieces: it stops where Python has to say something, and goes on.
// What `hwsim_served_play` answers instead of HWSIM_DONE, and the numbers that it leaves in `asked`.
enum hwsim_served_status {
  HWSIM_SERVED_WANTS_REQUESTS = HWSIM_NO_MEMORY + 14,
  HWSIM_SERVED_ENDED,         // requests whose rows are to be taken
  HWSIM_SERVED_WANTS_LINE,    // answers, low, step, copy -> start, attention, slope, rows, host
  HWSIM_SERVED_WANTS_AROUND,  // rows, ended, total, copy -> fs
  HWSIM_SERVED_WANTS_PROMPT,  // tokens, read, prompts, copy -> fs
  HWSIM_SERVED_WANTS_SENT,    // copy, rows (negative: with prompts) -> fs
  HWSIM_SERVED_WANTS_COST,    // copy, answers, context, ended, low, prompts, (tokens, read) of each -> see `told_cost`
  HWSIM_SERVED_DOES_NOT_FIT,  // tokens
};

// numbers, parts: the settings, in the order of `hwsim.actors.serving.compiled`. graphs: their sizes. needs: blocks by tokens, if
// they are not in proportion. handle: of what is kept until `hwsim_served_free`.
HWSIM_CORE_API int32_t hwsim_served_new(const int64_t* numbers, const double* parts, const int64_t* graphs, const int64_t* needs,
                                        int64_t* handle);
HWSIM_CORE_API int32_t hwsim_served_free(int64_t handle);
// Requests in their order: arrivals of two words; ids: pieces of the prompts, `firsts` the first one of each, and the end.
HWSIM_CORE_API int32_t hwsim_served_feed(int64_t handle, int64_t count, const int64_t* arrivals, const int64_t* prompts,
                                         const int64_t* outputs, const int64_t* firsts, const int64_t* ids, int64_t span,
                                         int64_t is_last);
HWSIM_CORE_API int32_t hwsim_served_play(int64_t handle, int64_t* asked);
HWSIM_CORE_API int32_t hwsim_served_told(int64_t handle, int64_t what, const int64_t* key, const int64_t* values,
                                         const double* floats);
// Rows of requests that have ended: 37 numbers of two words each.
HWSIM_CORE_API int32_t hwsim_served_ended(int64_t handle, int64_t* rows);
// How many bins, sums and records there are, and how many runs there were.
HWSIM_CORE_API int32_t hwsim_served_sizes(int64_t handle, int64_t* sizes);
HWSIM_CORE_API int32_t hwsim_served_results(int64_t handle, int64_t* numbers, int64_t* meters, int64_t* course, int64_t* bins,
                                            int64_t* sums, double* sizes, int64_t* records);
