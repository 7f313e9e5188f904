// Notes on the paces of a run: which capacity holds a class back from when on, and if wanted the levels of full capacities.
//
// The pace of a class is the level of what holds it back. One coming or going changes many paces, fewer levels, and what holds
// back of hardly any class. Levels are most of the notes and hardly ever asked for: a replay that notes them comes when they are.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "words.h"

namespace hwsim {

// A column that grows where it is, if the system can do that: half the memory at the most.
template <typename Entry>
class Column {
 public:
  size_t size() const { return size_; }
  const Entry* data() const { return entries_.get(); }

  void push(Entry entry) {
    if (size_ == room_) grow();
    entries_[size_++] = entry;
  }

 private:
  struct Free {
    void operator()(Entry* entries) const { std::free(entries); }
  };

  void grow() {
    const size_t room = room_ + room_ / 2 + 64;
    auto* longer = static_cast<Entry*>(std::realloc(static_cast<void*>(entries_.get()), room * sizeof(Entry)));
    if (longer == nullptr) throw std::bad_alloc();
    (void)entries_.release();
    entries_.reset(longer);
    room_ = room;
  }

  std::unique_ptr<Entry[], Free> entries_;
  size_t size_ = 0, room_ = 0;
};

constexpr int32_t NEARLY = -3;

struct Notes {
  Column<int64_t> bound_times;  // fs, class, and what holds it back from then on
  Column<int32_t> bound_classes, bounds;      // bounds: NEARLY - capacity, if the level is nearly the pace alone
  Column<int64_t> level_times;                // fs, capacity, and the level at which it is full from then on
  Column<int32_t> filled;
  Column<Two> levels;
};

}  // namespace hwsim
