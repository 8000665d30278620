// Cross-entropy of many classes: what each row's exponentials sum to, and the gradient from that.
#include <cmath>
#include <limits>

#include "vector.h"

// take(first, count): the numbers `first` … of a row, sixteen at a time, fewer at its end.
template <class Take> static inline void along(int64_t classes, Take take) {
  int64_t v = 0;
  for (; v + LANES <= classes; v += LANES) take(v, LANES);
  if (v < classes) take(v, int(classes - v));
}

// Lanes beyond `count` would be zeros, which are neither the largest nor of any weight.
static inline Floats real(Floats x, int count) {
  constexpr Ints LANE = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return count == LANES ? x : LANE < count ? x : spread(-std::numeric_limits<float>::infinity());
}

extern "C" {

// log_sums[n] = log Σ_v exp(logits[n, v])
void log_sums(int64_t rows, int64_t classes, int threads, const float *logits, float *log_sums) {
  share(rows, threads, [=](int64_t n, int) {
    const float *row = logits + n * classes;
    Floats tops = spread(-std::numeric_limits<float>::infinity()), total{};
    along(classes, [&](int64_t v, int count) { tops = larger(tops, real(load(row + v, count), count)); });
    const float top = largest(tops);
    along(classes, [&](int64_t v, int count) { total += exp(real(load(row + v, count), count) - top); });
    log_sums[n] = std::isinf(top) ? top : top + std::log(sum(total));
  });
}

// d_logits[n, v] = shares[n] · exp(logits[n, v] - log_sums[n])
void softmax_shares(int64_t rows, int64_t classes, int threads, const float *logits, const float *log_sums,
                    const float *shares, float *d_logits) {
  share(rows, threads, [=](int64_t n, int) {
    const float *row = logits + n * classes, level = log_sums[n], share = shares[n];
    along(classes, [=](int64_t v, int count) {
      store(d_logits + n * classes + v, share * exp(load(row + v, count) - level), count);
    });
  });
}
}
