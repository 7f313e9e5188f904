// The replay of `hwsim.engine.replay`, on columns.
#include <algorithm>
#include <memory>
#include <vector>

#include "flows.h"
#include "guarded.h"
#include "heaps.h"
#include "watch.h"

namespace hwsim {

namespace {

struct Graph {
  int64_t ops;
  const int64_t* first;
  const int32_t* next;
  const uint8_t* joins;
  const int64_t *fixed, *flow;
  const int32_t *flow_class, *take, *give;
};

struct Timeline {
  int64_t *start, *end, *granted;
};

struct Timed {
  int64_t time;
  int32_t op;
  bool operator<(const Timed& other) const { return time < other.time; }
};

// Mostly there are one or two.
void sort(Numbers& numbers) {
  constexpr size_t few = 16;
  if (numbers.size() > few) {
    std::sort(numbers.begin(), numbers.end());
    return;
  }
  for (size_t place = 1; place < numbers.size(); ++place) {
    const int32_t number = numbers[place];
    size_t to = place;
    for (; to > 0 && number < numbers[to - 1]; --to) numbers[to] = numbers[to - 1];
    numbers[to] = number;
  }
}

struct Pool {
  int64_t free;
  int32_t head = NONE, tail = NONE;  // of who waits for it
};

class Replay {
 public:
  Replay(const Graph& graph, const int32_t* missing, int64_t pools, const int64_t* servers, const Timeline& timeline, Flows& flows)
      : flows_(flows), missing_(missing, missing + graph.ops), behind_(pools > 0 ? graph.ops : 0, NONE) {
    for (int64_t pool = 0; pool < pools; ++pool) pools_.push_back({servers[pool]});
    std::fill_n(timeline.start, graph.ops, -1);
    std::fill_n(timeline.end, graph.ops, -1);
    if (pools > 0) std::fill_n(timeline.granted, graph.ops, -1);
    for (int64_t op = 0; op < graph.ops; ++op) {
      if (missing_[op] == 0) ready_.push_back(static_cast<int32_t>(op));
    }
  }

  // Play on the columns that were there from the beginning; HWSIM_MORE once a time of computing has passed.
  int32_t play(const Graph& graph, const Timeline& timeline, Watch watch) {
    graph_ = graph;
    timeline_ = timeline;
    for (;;) {
      if (watch.is_over()) return HWSIM_MORE;
      retire();
      pass_joins();
      sort(ready_);
      sort(freed_);
      for (const int32_t op : freed_) {
        if (!hand_on(op)) return HWSIM_TOO_FAR;
      }
      for (const int32_t op : ready_) {
        if (is_served(op) && !begin(op)) return HWSIM_TOO_FAR;
      }
      ready_.clear();
      if (!calendar_.is_empty() && calendar_.least().time <= instant_) continue;
      if (flows_.is_unsettled()) {
        if (!flows_.settle(instant_)) return HWSIM_TOO_FAR;
        flows_.note(instant_);
      }
      const int64_t due = flows_.due();
      if (calendar_.is_empty() && due < 0) return HWSIM_DONE;
      instant_ = due >= 0 ? due : calendar_.least().time;
      if (!calendar_.is_empty()) instant_ = std::min(instant_, calendar_.least().time);
    }
  }

 private:
  // An op ends: what waits for no other is ready.
  void release(int32_t op) {
    timeline_.end[op] = instant_;
    for (int64_t place = graph_.first[op]; place < graph_.first[op + 1]; ++place) {
      const int32_t after = graph_.next[place];
      if (--missing_[after] == 0) ready_.push_back(after);
    }
  }

  // What ends at this instant.
  void retire() {
    retired_.clear();
    freed_.clear();
    while (!calendar_.is_empty() && calendar_.least().time <= instant_) {
      const int32_t op = calendar_.pop().op;
      if (graph_.flow_class[op] >= 0) {
        flows_.join(graph_.flow_class[op], op, graph_.flow[op], instant_);
      } else {
        retired_.push_back(op);
      }
    }
    while (flows_.is_due(instant_)) flows_.leave(instant_, retired_);
    for (const int32_t op : retired_) {
      release(op);
      if (!pools_.empty() && graph_.give[op] >= 0) freed_.push_back(op);
    }
  }

  // Joins end at once, and what they make ready comes after.
  void pass_joins() {
    size_t kept = 0;
    for (size_t place = 0; place < ready_.size(); ++place) {
      const int32_t op = ready_[place];
      if (!graph_.joins[op]) {
        ready_[kept++] = op;
        continue;
      }
      timeline_.start[op] = instant_;
      release(op);
    }
    ready_.resize(kept);
  }

  // The server of an op that has ended goes to who waits longest; false if its end is beyond an int64.
  bool hand_on(int32_t op) {
    Pool& pool = pools_[graph_.give[op]];
    const int32_t heir = pool.head;
    if (heir < 0) {
      ++pool.free;
      return true;
    }
    pool.head = behind_[heir];
    timeline_.granted[heir] = op;
    return begin(heir);
  }

  // Whether an op has a server, or needs none; else it waits for one.
  bool is_served(int32_t op) {
    if (pools_.empty() || graph_.take[op] < 0) return true;
    Pool& pool = pools_[graph_.take[op]];
    if (pool.free > 0) {
      --pool.free;
      return true;
    }
    if (pool.head < 0) {
      pool.head = op;
    } else {
      behind_[pool.tail] = op;
    }
    pool.tail = op;
    return false;
  }

  bool begin(int32_t op) {
    timeline_.start[op] = instant_;
    if (graph_.fixed[op] == 0 && graph_.flow_class[op] >= 0) {
      flows_.join(graph_.flow_class[op], op, graph_.flow[op], instant_);
      return true;
    }
    if (graph_.fixed[op] > INT64_MAX - instant_) return false;
    calendar_.push({instant_ + graph_.fixed[op], op});
    return true;
  }

  Graph graph_{};
  Timeline timeline_{};
  Flows& flows_;
  Numbers missing_;
  Numbers behind_;  // who waits behind an op for the same pool
  std::vector<Pool> pools_;
  Heap<Timed> calendar_;
  Numbers ready_, retired_, freed_;
  int64_t instant_ = 0;
};

}  // namespace

}  // namespace hwsim

struct hwsim_flows {
  hwsim::Flows flows;
  std::unique_ptr<hwsim::Replay> begun;  // between two calls of one replay
};

int32_t hwsim_flows_new(int64_t classes, const uint64_t* alone, const int64_t* first_pair, const int32_t* pair_capacity,
                        const int32_t* pair_weight, int64_t weights, const uint64_t* weight_words, const int64_t* first_draw,
                        const int32_t* draw_capacity, const int32_t* draw_amount, int64_t amounts, const uint64_t* amount_words,
                        int64_t capacities, const uint64_t* full, const uint64_t* margins, int64_t nearly, int64_t keeps_levels, int64_t metered, const int32_t* ops,
                        hwsim_flows** flows) {
  return hwsim::guarded([&]() -> int32_t {
    *flows = new hwsim_flows{hwsim::Flows({classes, weights, amounts, capacities, alone, first_pair, pair_capacity, pair_weight,
                                           weight_words, first_draw, draw_capacity, draw_amount, amount_words, full, margins,
                                           nearly, keeps_levels, metered, ops}), nullptr};
    return HWSIM_DONE;
  });
}

int32_t hwsim_replay(int64_t ops, const int64_t* first, const int32_t* next, const int32_t* missing, const uint8_t* joins,
                     const int64_t* fixed, const int64_t* flow, const int32_t* flow_class, const int32_t* take,
                     const int32_t* give, int64_t pools, const int64_t* servers, hwsim_flows* flows, int64_t* start, int64_t* end,
                     int64_t* granted, int64_t patience) {
  return hwsim::guarded([&]() -> int32_t {
    const hwsim::Graph graph{ops, first, next, joins, fixed, flow, flow_class, take, give};
    const hwsim::Timeline timeline{start, end, granted};
    std::unique_ptr<hwsim::Replay>& replay = flows->begun;
    if (!replay) replay = std::make_unique<hwsim::Replay>(graph, missing, pools, servers, timeline, flows->flows);
    const int32_t status = replay->play(graph, timeline, hwsim::Watch(patience));
    if (status == HWSIM_MORE) return status;
    replay.reset();
    flows->flows.finish();
    return status;
  });
}

int32_t hwsim_flows_notes(const hwsim_flows* flows, int64_t* sizes, const void** columns) {
  const hwsim::Notes& notes = flows->flows.notes;
  const int64_t sizes_now[] = {static_cast<int64_t>(notes.bounds.size()), static_cast<int64_t>(notes.levels.size()),
                               flows->flows.solves};
  const void* columns_now[] = {notes.bound_times.data(), notes.bound_classes.data(), notes.bounds.data(),
                               notes.level_times.data(), notes.filled.data(),        notes.levels.data(),
                               flows->flows.meters.received().data()};
  std::copy(std::begin(sizes_now), std::end(sizes_now), sizes);
  std::copy(std::begin(columns_now), std::end(columns_now), columns);
  return HWSIM_DONE;
}

int32_t hwsim_flows_free(hwsim_flows* flows) {
  delete flows;
  return HWSIM_DONE;
}
