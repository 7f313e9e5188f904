// The doors of `served_service.h`.
#include "guarded.h"
#include "served_service.h"

using namespace hwsim::served;

struct hwsim_served {
  Service service;
};

namespace {

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

int32_t hwsim_served_new(const int64_t* numbers, const double* parts, const int64_t* graphs, const int64_t* needs,
                         hwsim_served** served) {
  return kept_in([&]() -> int32_t {
    *served = new hwsim_served{Service(numbers, parts, graphs, needs)};
    return HWSIM_DONE;
  });
}

int32_t hwsim_served_free(hwsim_served* served) {
  delete served;
  return HWSIM_DONE;
}

int32_t hwsim_served_feed(hwsim_served* served, int64_t count, const int64_t* arrivals, const int64_t* afters, const int64_t* prompts,
                          const int64_t* outputs, const int64_t* firsts, const int64_t* ids, int64_t span, int64_t is_last) {
  return kept_in([&]() -> int32_t {
    served->service.feed(count, arrivals, afters, prompts, outputs, firsts, ids, span, is_last != 0);
    return HWSIM_DONE;
  });
}

int32_t hwsim_served_play(hwsim_served* served, int64_t* asked, int64_t patience) {
  return kept_in([&]() -> int32_t {
    try {
      return served->service.play(asked, hwsim::Watch(patience));
    } catch (const DoesNotFit& request) {
      asked[0] = request.tokens;
      return HWSIM_SERVED_DOES_NOT_FIT;
    }
  });
}

int32_t hwsim_served_told(hwsim_served* served, int64_t what, const int64_t* key, const int64_t* values, const double* floats) {
  return kept_in([&]() -> int32_t {
    Service* service = &served->service;
    if (what == HWSIM_SERVED_WANTS_LINE) service->told_line(key, values);
    if (what == HWSIM_SERVED_WANTS_AROUND) service->told_around(key, values[0]);
    if (what == HWSIM_SERVED_WANTS_PROMPT) service->told_prompt(key, values[0]);
    if (what == HWSIM_SERVED_WANTS_SENT) service->told_sent(key, values[0]);
    if (what == HWSIM_SERVED_WANTS_COST) service->told_cost(values, floats);
    return HWSIM_DONE;
  });
}

int32_t hwsim_served_ended(hwsim_served* served, int64_t* rows) {
  served->service.take_ended(rows);
  return HWSIM_DONE;
}

int32_t hwsim_served_sizes(hwsim_served* served, int64_t* sizes) {
  served->service.sizes(sizes);
  return HWSIM_DONE;
}

int32_t hwsim_served_results(hwsim_served* served, int64_t* numbers, int64_t* meters, int64_t* course, int64_t* bins, int64_t* sums,
                             double* sizes, int64_t* records) {
  served->service.results(numbers, meters, course, bins, sums, sizes, records);
  return HWSIM_DONE;
}
