// Vectors of numbers, the functions of them that the operations need, and work shared among threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

// A vector as long as a register of the processor: the compiler does not split longer ones well.
#if defined(__AVX512F__)
constexpr int LANES = 16;
#elif defined(__AVX__)
constexpr int LANES = 8;
#else
constexpr int LANES = 4;
#endif
typedef float Floats __attribute__((vector_size(4 * LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES)));
typedef uint32_t Words __attribute__((vector_size(4 * LANES)));

inline Floats load(const float *from) {
  Floats x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

inline void store(float *to, Floats x) { std::memcpy(to, &x, sizeof x); }

// Load the first `count` lanes; the others are zero.
inline Floats load(const float *from, int count) {
  if (count == LANES) return load(from);
  Floats x{};
  std::memcpy(&x, from, sizeof(float) * count);
  return x;
}

inline void store(float *to, Floats x, int count) {
  if (count == LANES) store(to, x);
  else std::memcpy(to, &x, sizeof(float) * count);
}

inline Floats spread(float x) { return x - Floats{}; }

// 0, 1, 2, …
inline Ints lane_numbers() {
  Ints x{};
  for (int i = 0; i < LANES; i++) x[i] = i;
  return x;
}

// If `a` is NaN, so is the result: a model that has diverged must not seem to work.
inline Floats smaller(Floats a, Floats b) { return a > b ? b : a; }
inline Floats larger(Floats a, Floats b) { return a < b ? b : a; }

inline float sum(Floats x) {
  float total = 0;
  for (int i = 0; i < LANES; i++) total += x[i];
  return total;
}

inline float largest(Floats x) {
  float top = x[0];
  for (int i = 1; i < LANES; i++) top = x[i] > top ? x[i] : top;
  return top;
}

// exp(x) = power · (1 + rest). The two are separate so that exp(x) - 1 loses no digits near zero.
struct Exponential {
  Floats power, rest;
};

inline Exponential split_exp(Floats x) {
  x = smaller(larger(x, spread(-87.0f)), spread(88.0f));  // beyond these, float32 overflows
  constexpr float SHIFT = 12582912.0f;                    // 1.5 · 2²³: adding it rounds to a whole number, in the last bits
  const Floats shifted = x * 1.44269504f + SHIFT;
  const Floats n = shifted - SHIFT;
  // x = n ln 2 + r with |r| <= ln 2 / 2; ln 2 in two parts, so that n times the first is exact (Cody & Waite 1980)
  const Floats r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  // Taylor's series of exp(r) - 1: the next term is below 6e-9
  Floats series = r * (1 / 5040.0f) + 1 / 720.0f;
  series = series * r + 1 / 120.0f;
  series = series * r + 1 / 24.0f;
  series = series * r + 1 / 6.0f;
  series = series * r + 0.5f;
  const Floats rest = r + r * r * series;
  Floats power;  // 2ⁿ: n + 127 in a float's exponent
  const Ints bits = ((Ints)shifted - 0x4B400000 + 127) << 23;  // 0x4B400000 is SHIFT
  std::memcpy(&power, &bits, sizeof power);
  return {power, rest};
}

inline Floats exp(Floats x) {
  const auto [power, rest] = split_exp(x);
  return power + power * rest;
}

inline Floats sigmoid(Floats x) { return 1.0f / (1.0f + exp(-x)); }

inline Floats tanh(Floats x) {
  const auto [power, rest] = split_exp(2.0f * x);
  const Floats less_one = power * rest + (power - 1.0f);  // exp(2x) - 1
  return less_one / (less_one + 2.0f);
}

// Call work(i, worker) for every i below `count`, with at most so many threads. Each takes the next free i.
template <class Work> void share(int64_t count, int threads, Work work) {
  std::atomic<int64_t> next{0};
  const auto take = [&](int worker) {
    for (int64_t i; (i = next++) < count;) work(i, worker);
  };
  std::vector<std::thread> others;
  for (int worker = 1; worker < threads && worker < count; worker++) others.emplace_back(take, worker);
  take(0);
  for (auto &other : others) other.join();
}
