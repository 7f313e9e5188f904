"""The program in C++ that plays the ops of a run on SimGrid."""

from __future__ import annotations

from typing import Final

PROGRAM: Final = r"""// Plays ops.txt on platform.xml with SimGrid 3.32 or later, and prints the end of every op in seconds.
//   g++ -O2 play.cpp -o play -lsimgrid && ./play platform.xml ops.txt > ends.txt
#include <simgrid/s4u.hpp>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

static std::string name_of(std::string word)
{
  for (auto at = word.find("%20"); at != std::string::npos; at = word.find("%20", at + 1))
    word.replace(at, 3, " ");
  return word;
}

static void precede(const sg4::ActivityPtr& before, const sg4::ActivityPtr& then)
{
  if (auto* exec = dynamic_cast<sg4::Exec*>(before.get()))
    exec->add_successor(then);
  else if (auto* comm = dynamic_cast<sg4::Comm*>(before.get()))
    comm->add_successor(then);
}

int main(int argc, char* argv[])
{
  sg4::Engine engine(&argc, argv);
  if (argc < 3) {
    std::cerr << "usage: " << argv[0] << " platform.xml ops.txt\n";
    return 2;
  }
  // TCP has no part in it: no window, no factors, shares that are updated at once
  for (const char* each : {"network/model:CM02", "network/TCP-gamma:0", "network/bandwidth-factor:1", "network/latency-factor:1",
                           "network/weight-S:0", "network/crosstraffic:0", "network/optim:Full", "cpu/optim:Full"})
    sg4::Engine::set_config(each);
  for (const char* each : {"precision/timing:1e-12", "precision/work-amount:1e-9", "surf/precision:1e-12",
                           "maxmin/precision:1e-9"})
    try {
      sg4::Engine::set_config(each);
    } catch (const std::out_of_range&) {
      // another version calls it otherwise
    }
  engine.load_platform(argv[1]);
  for (auto* link : engine.get_all_links())
    link->set_latency(0); // it is in the time of the ops

  std::ifstream file(argv[2]);
  std::vector<sg4::ActivityPtr> first, last; // of each op
  std::string line;
  auto* clock  = sg4::Host::by_name("time");
  auto waiting = [&](const std::string& name, double seconds) {
    sg4::ExecPtr exec = sg4::Exec::init();
    exec->set_name(name)->set_flops_amount(seconds * clock->get_speed())->set_host(clock);
    return exec;
  };
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string kind, source, target;
    size_t op;
    double seconds, amount, rate;
    words >> kind;
    if (kind == "d") {
      size_t before, then;
      words >> before >> then;
      precede(last.at(before), first.at(then));
      continue;
    }
    if (kind != "n" && kind != "e" && kind != "c")
      continue;
    words >> op >> seconds;
    sg4::ActivityPtr body;
    if (kind == "e") {
      words >> source >> amount;
      sg4::ExecPtr exec = sg4::Exec::init();
      exec->set_flops_amount(amount)->set_host(sg4::Host::by_name(name_of(source)));
      body = exec;
    } else if (kind == "c") {
      words >> source >> target >> amount >> rate;
      sg4::CommPtr comm = sg4::Comm::sendto_init();
      comm->set_source(sg4::Host::by_name(name_of(source)));
      comm->set_destination(sg4::Host::by_name(name_of(target)));
      comm->set_payload_size(static_cast<uint64_t>(amount + 0.5));
      if (rate > 0)
        comm->set_rate(rate);
      body = comm;
    }
    sg4::ActivityPtr begin;
    if (not body || seconds > 0)
      begin = waiting(std::to_string(op), seconds);
    if (body && begin)
      precede(begin, body);
    first.push_back(begin ? begin : body);
    last.push_back(body ? body : begin);
  }
  for (size_t op = 0; op < first.size(); op++) {
    if (first[op] != last[op])
      last[op]->vetoable_start();
    first[op]->vetoable_start();
  }
  engine.run();
  double makespan = 0;
  for (size_t op = 0; op < last.size(); op++) {
    std::printf("%zu %.15g\n", op, last[op]->get_finish_time());
    makespan = std::max(makespan, last[op]->get_finish_time());
  }
  std::fprintf(stderr, "makespan %.15g s\n", makespan);
  return 0;
}
"""
