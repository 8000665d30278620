// Dropout's masks: which numbers live, from a seed and the place alone, so that a backward pass finds the same again.
//
// A row has a key (SplitMix64, Steele et al. 2014); its columns are numbered by words, whose bits are mixed with that
// key (the finaliser of MurmurHash3, Appleby). A word decides over two columns, 16 bits each.
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

// 1 where a number lives, else 0: of columns 32 block … 32 block + 15 (`first`), and of the 16 after those.
struct Masks {
  Floats first, second;
};

inline Masks draw(Key key, int block, int zeros) {  // `zeros` of 65,536 weights are dropped
  constexpr Words LANE = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  Words x = (LANE + uint32_t(block * LANES)) * 0x9E3779B9u + key.low;
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  x = (x ^ (x >> 16)) ^ key.high;
  const Floats one = spread(1.0f), none{};
  return {Ints(x & 0xFFFFu) >= zeros ? one : none, Ints(x >> 16) >= zeros ? one : none};
}
