// Dropout masks that depend on a seed, the position and LANES only, so that the backward pass can draw them again.
//
// Each row has a key (SplitMix64, Steele et al. 2014). The bits of a column's number are mixed with the key (the
// finaliser of MurmurHash3, Appleby). One word of 32 bits decides about two columns.
#pragma once

#include "vector.h"

struct Key {
  uint32_t low, high;
};

inline Key row_key(uint64_t seed, uint64_t row) {
  uint64_t z = seed + (row + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return {uint32_t(z), uint32_t(z >> 32)};
}

// 1 where a weight is kept, else 0: for the LANES columns from 2 LANES block on, and for the LANES after them.
struct Masks {
  Floats first, second;
};

inline Masks draw(Key key, int block, int zeros) {  // `zeros` of 65,536 weights are dropped
  Words x = (Words(lane_numbers()) + uint32_t(block * LANES)) * 0x9E3779B9u + key.low;
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  x = (x ^ (x >> 16)) ^ key.high;
  const Floats one = spread(1.0f), none{};
  return {Ints(x & 0xFFFFu) >= zeros ? one : none, Ints(x >> 16) >= zeros ? one : none};
}
