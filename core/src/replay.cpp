// The replay of `hwsim.engine.replay`, on columns.
#include <algorithm>
#include <memory>
#include <vector>

#include "calendar.h"
#include "flows.h"
#include "guarded.h"
#include "watch.h"

namespace hwsim {

namespace {

struct Graph {
  int64_t ops, edges, starting;
  const int64_t *first, *fixed, *flow, *starts;
  const int32_t *next, *flow_class;
};

struct Timeline {
  int64_t *start, *end, *granted, *drawing;
};

// Rows of fs, capacity and part of it from then on; those from `taken` on are still to come.
struct Changes {
  int64_t count;
  const int64_t* rows;
  int64_t* taken;
  const int64_t* next() const { return rows + 3 * *taken; }
};

constexpr int32_t JOIN = -2;   // of `Op::take`
constexpr int32_t BEGUN = -2;  // of `Op::link`

struct Pool {
  int64_t free;
  int32_t head = NONE, tail = NONE;  // of who waits for it
};

// Numbers of ops, with room for all; room that nothing is written to costs nothing.
class List {
 public:
  explicit List(int64_t ops) : numbers_(new int32_t[static_cast<size_t>(ops) + 1]) {}

  const int32_t* begin() const { return numbers_.get(); }
  const int32_t* end() const { return numbers_.get() + size_; }
  void clear() { size_ = 0; }

  // Without a branch, which nothing could foresee.
  void push_if(bool is_in, int32_t number) {
    numbers_[size_] = number;
    size_ += is_in;
  }

  // Mostly there are one or two.
  void sort() {
    constexpr size_t few = 16;
    if (size_ > few) {
      std::sort(numbers_.get(), numbers_.get() + size_);
      return;
    }
    for (size_t place = 1; place < size_; ++place) {
      const int32_t number = numbers_[place];
      size_t to = place;
      for (; to > 0 && number < numbers_[to - 1]; --to) numbers_[to] = numbers_[to - 1];
      numbers_[to] = number;
    }
  }

  // Drop those of whom it is true. What is pushed meanwhile is asked about as well.
  template <typename Condition>
  void drop_if(Condition is_dropped) {
    size_t kept = 0;
    for (size_t place = 0; place < size_; ++place) {
      const int32_t number = numbers_[place];
      if (!is_dropped(number)) numbers_[kept++] = number;
    }
    size_ = kept;
  }

 private:
  std::unique_ptr<int32_t[]> numbers_;
  size_t size_ = 0;
};

class Replay {
 public:
  Replay(const Graph& graph, const int32_t* missing, const uint8_t* joins, const int32_t* take, const int32_t* give,
         int64_t pools, const int64_t* servers, Flows& flows)
      : flows_(flows),
        ops_(new Op[static_cast<size_t>(graph.ops) + 1]),
        calendar_(ops_.get()),
        ready_(graph.ops),
        retired_(graph.ops) {
    for (int64_t pool = 0; pool < pools; ++pool) pools_.push_back({servers[pool]});
    for (int64_t op = 0; op < graph.ops; ++op) {
      ops_[op] = {graph.fixed[op], graph.first[op], NONE, NONE, graph.flow_class[op], missing[op]};
      if (graph.starting > 0 && graph.starts[2 * op] >= 0) ops_[op].flow_class = static_cast<int32_t>(graph.starts[2 * op]);
      if (pools > 0) {
        ops_[op].take = take[op];
        ops_[op].give = give[op];
      }
      if (joins[op]) {
        ops_[op].take = JOIN;
        has_joins_ = true;
      }
      ready_.push_if(missing[op] == 0, static_cast<int32_t>(op));
    }
    ops_[graph.ops].first = graph.first[graph.ops];
  }

  // Play on the columns that were there from the beginning; HWSIM_MORE once a time of computing has passed, or for more changes.
  int32_t play(const Graph& graph, const Timeline& timeline, const Changes& changes, Watch watch) {
    graph_ = graph;
    timeline_ = timeline;
    for (;;) {
      if (watch.is_over()) return HWSIM_MORE;
      for (; *changes.taken < changes.count && *changes.next() <= instant_; ++*changes.taken) {
        flows_.change(static_cast<int32_t>(changes.next()[1]), static_cast<uint64_t>(changes.next()[2]));
      }
      if (*changes.taken == changes.count) return HWSIM_MORE;
      find_retired();
      for (const int32_t op : retired_) {
        release(op);
        if (ops_[op].give >= 0 && !hand_on(op)) return HWSIM_TOO_FAR;
      }
      if (has_joins_) ready_.drop_if([&](int32_t op) { return is_passed(op); });
      ready_.sort();
      for (const int32_t op : ready_) {
        if (is_served(op) && !begin(op, NONE)) return HWSIM_TOO_FAR;
      }
      ready_.clear();
      retired_.clear();
      if (calendar_.is_due(instant_)) continue;
      if (flows_.is_unsettled()) {
        if (!flows_.settle(instant_)) return HWSIM_TOO_FAR;
        flows_.note(instant_);
      }
      const uint64_t next = std::min(calendar_.least(), static_cast<uint64_t>(flows_.due()));  // -1 is later than every time
      if (next == Calendar::NEVER && (flows_.is_empty() || *changes.next() == INT64_MAX)) {
        write();
        return HWSIM_DONE;
      }
      instant_ = static_cast<int64_t>(std::min(next, static_cast<uint64_t>(*changes.next())));
      calendar_.come(instant_);
    }
  }

 private:
  // What ends at this instant, in order: of two servers that are freed the first goes to who waits longer.
  void find_retired() {
    while (calendar_.is_due(instant_)) {
      const int32_t op = calendar_.pop();
      const bool flows = ops_[op].flow_class >= 0;
      ops_[op].link = BEGUN;
      retired_.push_if(!flows, op);
      if (flows) flow(op);
    }
    if (flows_.is_due(instant_)) leave();
    retired_.sort();
  }

  // Demands end, or the start-up times before them.
  [[gnu::noinline]] void leave() {
    left_.clear();
    while (flows_.is_due(instant_)) flows_.leave(instant_, left_);
    for (const int32_t op : left_) {
      const bool starts = is_starting(op);
      if (starts) timeline_.drawing[op] = instant_;
      if (starts && graph_.flow_class[op] >= 0) {
        flows_.join(graph_.flow_class[op], op, graph_.flow[op], instant_);
      } else {
        timeline_.end[op] = instant_;
        retired_.push_if(true, op);
      }
    }
  }

  // Whether the clocked start-up time of an op is not over.
  bool is_starting(int32_t op) const { return graph_.starting > 0 && graph_.starts[2 * op] >= 0 && timeline_.drawing[op] < 0; }

  // An op ends: what waits for no other is ready.
  void release(int32_t op) {
    const int64_t last = ops_[op + 1].first;
    for (int64_t place = ops_[op].first; place < last; ++place) {
      const int32_t after = graph_.next[place];
      ready_.push_if(--ops_[after].link == 0, after);
    }
  }

  // Whether an op is a join: it ends at once, and what it makes ready comes after.
  bool is_passed(int32_t op) {
    if (ops_[op].take != JOIN) return false;
    ops_[op].take = NONE;
    ops_[op].link = BEGUN;
    ops_[op].time = instant_;
    release(op);
    return true;
  }

  // The server of an op that has ended goes to who waits longest; false if its end is beyond an int64.
  bool hand_on(int32_t op) {
    Pool& pool = pools_[ops_[op].give];
    const int32_t heir = pool.head;
    if (heir < 0) {
      ++pool.free;
      return true;
    }
    pool.head = ops_[heir].link;
    if (pool.head >= 0) __builtin_prefetch(&ops_[pool.head]);
    return begin(heir, op);
  }

  // Whether an op has a server, or needs none; else it waits for one.
  bool is_served(int32_t op) {
    if (ops_[op].take < 0) return true;
    Pool& pool = pools_[ops_[op].take];
    if (pool.free > 0) {
      --pool.free;
      return true;
    }
    ops_[op].link = NONE;
    if (pool.head < 0) {
      pool.head = op;
    } else {
      ops_[pool.tail].link = op;
    }
    pool.tail = op;
    return false;
  }

  bool begin(int32_t number, int32_t granted) {
    Op& op = ops_[number];
    op.take = granted;
    if (op.time == 0 && op.flow_class >= 0) {
      op.link = BEGUN;
      op.time = instant_;
      flow(number);
      return true;
    }
    if (op.time > INT64_MAX - instant_) return false;
    calendar_.push(number, instant_ + op.time);
    fetch(op.first);
    fetch(op.first + 1);
    return true;
  }

  // Bring what is likely a successor of an op that begins into the cache: it is counted down when that op ends.
  void fetch(int64_t place) const {
    if (place < graph_.edges) __builtin_prefetch(&ops_[graph_.next[place]]);
  }

  [[gnu::noinline]] void flow(int32_t op) {
    timeline_.end[op] = -1;
    flows_.join(ops_[op].flow_class, op, is_starting(op) ? graph_.starts[2 * op + 1] : graph_.flow[op], instant_);
  }

  // The timeline, but for ends of flows.
  void write() const {
    for (int64_t number = 0; number < graph_.ops; ++number) {
      const Op& op = ops_[number];
      const bool has_begun = op.link == BEGUN;
      timeline_.start[number] = has_begun ? op.time - graph_.fixed[number] : -1;
      if (!has_begun || op.flow_class < 0) timeline_.end[number] = has_begun ? op.time : -1;
      if (!pools_.empty()) timeline_.granted[number] = has_begun ? op.take : NONE;
    }
  }

  Graph graph_{};
  Timeline timeline_{};
  Flows& flows_;
  std::unique_ptr<Op[]> ops_;  // and one more, at whose successors those of the last op end
  std::vector<Pool> pools_;
  Calendar calendar_;
  List ready_, retired_;
  Numbers left_;
  bool has_joins_ = false;
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
                        int64_t capacities, const uint64_t* unit, const uint64_t* margins, int64_t nearly, int64_t keeps_levels,
                        int64_t metered, const int32_t* ops, const int64_t* first_clock, const uint64_t* clock_words,
                        hwsim_flows** flows) {
  return hwsim::guarded([&]() -> int32_t {
    *flows = new hwsim_flows{hwsim::Flows({classes, weights, amounts, capacities, alone, weight_words, amount_words, unit, margins,
                                           clock_words, first_pair, first_draw, first_clock, pair_capacity, pair_weight,
                                           draw_capacity, draw_amount, nearly, keeps_levels, metered, ops}), nullptr};
    return HWSIM_DONE;
  });
}

int32_t hwsim_replay(int64_t ops, const int64_t* first, const int32_t* next, const int32_t* missing, const uint8_t* joins,
                     const int64_t* fixed, const int64_t* flow, const int32_t* flow_class, const int32_t* take,
                     const int32_t* give, int64_t pools, const int64_t* servers, int64_t starting, const int64_t* starts,
                     hwsim_flows* flows, int64_t* start, int64_t* end, int64_t* granted, int64_t* drawing, int64_t patience,
                     int64_t changes, const int64_t* change_rows, int64_t* taken) {
  return hwsim::guarded([&]() -> int32_t {
    const hwsim::Graph graph{ops, first[ops], starting, first, fixed, flow, starts, next, flow_class};
    const hwsim::Timeline timeline{start, end, granted, drawing};
    std::unique_ptr<hwsim::Replay>& replay = flows->begun;
    if (!replay) replay = std::make_unique<hwsim::Replay>(graph, missing, joins, take, give, pools, servers, flows->flows);
    const int32_t status = replay->play(graph, timeline, {changes, change_rows, taken}, hwsim::Watch(patience));
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
