// The longest path of `hwsim.engine.longest_paths`.
#include <algorithm>
#include <vector>

#include "guarded.h"

int32_t hwsim_longest_path(int64_t ops, const int64_t* first, const int32_t* next, const int32_t* missing, const int64_t* fixed,
                           int64_t* start, int64_t* end) {
  return hwsim::guarded([&]() -> int32_t {
    std::vector<int32_t> left(missing, missing + ops);
    std::vector<int32_t> ready;
    ready.reserve(static_cast<size_t>(ops));
    std::fill_n(start, ops, 0);
    std::fill_n(end, ops, -1);
    for (int64_t op = ops - 1; op >= 0; --op) {
      if (left[op] == 0) ready.push_back(static_cast<int32_t>(op));
    }
    while (!ready.empty()) {
      const int32_t op = ready.back();
      ready.pop_back();
      if (fixed[op] > INT64_MAX - start[op]) return HWSIM_TOO_FAR;
      const int64_t ends = end[op] = start[op] + fixed[op];
      for (int64_t place = first[op]; place < first[op + 1]; ++place) {
        const int32_t after = next[place];
        start[after] = std::max(start[after], ends);
        if (--left[after] == 0) ready.push_back(after);
      }
    }
    for (int64_t op = 0; op < ops; ++op) {
      if (end[op] < 0) start[op] = -1;
    }
    return HWSIM_DONE;
  });
}
