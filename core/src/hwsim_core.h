// What hwsim calls: plain C, on columns of numbers that Python owns.
//
// A whole number of several words has the least word first. Times are femtoseconds. Nothing here calls Python, keeps a
// pointer into a column after it has returned, or shares anything between two calls: each may run in a thread of its own.
#pragma once

#include <stdint.h>

#if defined(_WIN32)
#define HWSIM_CORE_API extern "C" __declspec(dllexport)
#else
#define HWSIM_CORE_API extern "C" __attribute__((visibility("default")))
#endif

// One more whenever a declaration below changes, comes or goes; `hwsim.engine.core.ABI` is the same number.
#define HWSIM_CORE_ABI 1

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
