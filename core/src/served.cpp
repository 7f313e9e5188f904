// The doors of `served_service.h`.
#include "guarded.h"
#include "served_service.h"

using namespace hwsim::served;

namespace {

Service* at(int64_t handle) { return reinterpret_cast<Service*>(handle); }

template <typename Work>
int32_t kept_in(Work work) {
  return hwsim::guarded([&]() -> int32_t {
    try {
      return work();
    } catch (const TooFar&) {
      return HWSIM_TOO_FAR;
    }
  });
}

}  // namespace

int32_t hwsim_served_new(const int64_t* numbers, const double* parts, const int64_t* graphs, const int64_t* needs, int64_t* handle) {
  return kept_in([&]() -> int32_t {
    *handle = reinterpret_cast<int64_t>(new Service(numbers, parts, graphs, needs));
    return HWSIM_DONE;
  });
}

int32_t hwsim_served_free(int64_t handle) {
  delete at(handle);
  return HWSIM_DONE;
}

int32_t hwsim_served_feed(int64_t handle, int64_t count, const int64_t* arrivals, const int64_t* prompts, const int64_t* outputs,
                          const int64_t* firsts, const int64_t* ids, int64_t span, int64_t is_last) {
  return kept_in([&]() -> int32_t {
    at(handle)->feed(count, arrivals, prompts, outputs, firsts, ids, span, is_last != 0);
    return HWSIM_DONE;
  });
}

int32_t hwsim_served_play(int64_t handle, int64_t* asked) {
  return kept_in([&]() -> int32_t {
    try {
      return at(handle)->play(asked);
    } catch (const DoesNotFit& request) {
      asked[0] = request.tokens;
      return HWSIM_SERVED_DOES_NOT_FIT;
    }
  });
}

int32_t hwsim_served_told(int64_t handle, int64_t what, const int64_t* key, const int64_t* values, const double* floats) {
  return kept_in([&]() -> int32_t {
    Service* service = at(handle);
    if (what == HWSIM_SERVED_WANTS_LINE) service->told_line(key, values);
    if (what == HWSIM_SERVED_WANTS_AROUND) service->told_around(key, values[0]);
    if (what == HWSIM_SERVED_WANTS_PROMPT) service->told_prompt(key, values[0]);
    if (what == HWSIM_SERVED_WANTS_SENT) service->told_sent(key, values[0]);
    if (what == HWSIM_SERVED_WANTS_COST) service->told_cost(values, floats);
    return HWSIM_DONE;
  });
}

int32_t hwsim_served_ended(int64_t handle, int64_t* rows) {
  at(handle)->take_ended(rows);
  return HWSIM_DONE;
}

int32_t hwsim_served_sizes(int64_t handle, int64_t* sizes) {
  at(handle)->sizes(sizes);
  return HWSIM_DONE;
}

int32_t hwsim_served_results(int64_t handle, int64_t* numbers, int64_t* meters, int64_t* course, int64_t* bins, int64_t* sums,
                             double* sizes, int64_t* records) {
  at(handle)->results(numbers, meters, course, bins, sums, sizes, records);
  return HWSIM_DONE;
}
