// Requests as they come: in an order of their own, or some after answers (`hwsim.workload.serving.source`).
#pragma once

#include <deque>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "served_books.h"

namespace hwsim::served {

// Clients that ask when they are answered; or conversations that arrive, or requests.
class Source {
 public:
  // clients: 0 if requests come on their own. follow: some come after an answer.
  Source(Time start, int64_t clients, bool follow) : start_(start), clients_(clients), follow_(follow) {
    for (int64_t client = 0; follow_ && client < std::max<int64_t>(1, clients_); ++client) begins_.push_back(start_);
  }

  void add(Request* request, int64_t after) {
    if (follow_) {
      rows_.push_back({request, after});
    } else {
      request->arrival += start_;
      come_.push_back(request);
    }
  }

  // Take up rows for all that wait to ask; false if more have to be added first.
  bool has_rows(bool is_last) {
    if (!follow_) return is_last || !come_.empty();
    while (is_last || !rows_.empty()) {
      while (!rows_.empty() && rows_.front().after >= 0) {
        turns_[rows_.front().after] = rows_.front().request;
        rows_.pop_front();
      }
      if (rows_.empty() && !is_last) return false;
      if (begins_.empty() || rows_.empty()) return true;
      Request* request = rows_.front().request;
      rows_.pop_front();
      asks(request, begins_.front());
      begins_.pop_front();
    }
    return false;
  }

  bool is_empty() const { return follow_ ? asked_.empty() : come_.empty(); }
  Time time() const { return follow_ ? asked_.top().time : come_.front()->arrival; }

  Request* take() {
    if (!follow_) {
      Request* request = come_.front();
      come_.pop_front();
      return request;
    }
    const Asked next = asked_.top();
    asked_.pop();
    next.request->arrival = next.time;
    if (!clients_ && next.is_first) begins_.push_back(start_);
    return next.request;
  }

  // A request is answered by the op of that number: the next turn follows, or its client begins anew.
  void answered(int64_t number, Time at, int64_t op, Time end) {
    if (!follow_) return;
    if (const auto turn = turns_.find(number); turn != turns_.end()) {
      Request* request = turn->second;
      turns_.erase(turn);
      request->after = op;
      request->after_end = end;
      asked_.push({at + request->arrival, request->number, request, false});
    } else if (clients_) {
      begins_.push_back({at, op, end});
    }
  }

 private:
  struct Row {
    Request* request;
    int64_t after;
  };
  struct Begin {
    Time since;
    int64_t op = -1;
    Time end = 0;
    Begin(Time at) : since(at) {}
    Begin(Time at, int64_t of, Time until) : since(at), op(of), end(until) {}
  };
  struct Asked {
    Time time;
    int64_t number;
    Request* request;
    bool is_first;
    bool operator<(const Asked& other) const { return std::tie(other.time, other.number) < std::tie(time, number); }
  };

  void asks(Request* request, const Begin& begin) {
    request->after = begin.op;
    request->after_end = begin.end;
    asked_.push({begin.since + request->arrival, request->number, request, true});
  }

  const Time start_;
  const int64_t clients_;
  const bool follow_;
  std::deque<Request*> come_;
  std::deque<Row> rows_;
  std::deque<Begin> begins_;  // first requests that are asked for, in order
  std::priority_queue<Asked> asked_;
  std::unordered_map<int64_t, Request*> turns_;  // by the request whose answer they follow
};

}  // namespace hwsim::served
