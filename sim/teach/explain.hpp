// One request's life in words: what it waited for and how long, when it ran, who
// took its place, how it ended, and where its time went.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "sim/world/simulation.hpp"

namespace octavo::sim {

/// Runs the world and prints the life of request number `index`, on whichever
/// replica it was served. Throws input_error where there is no such request,
/// naming those there are.
void explain_request(const simulation_options& options, std::uint32_t index, std::ostream& out);

}  // namespace octavo::sim
