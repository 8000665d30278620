// Dropout whose mask is never kept: it depends on the seed and the place alone, so the backward pass draws it again.
#include "masks.h"

static int count(int64_t left) { return left < LANES ? int(left) : LANES; }

static Floats passed(Floats x, int rectified) {
  const Floats none{};
  return rectified ? (x < none ? none : x) : x;
}

extern "C" {

// y = x ∘ mask / (1 - rate), of (rows, columns) numbers; its own gradient, too, with the gradients in place of x.
// `rectified`: the same of max(0, x).
void drop(int64_t rows, int64_t columns, uint64_t seed, int dropped, int rectified, int threads, const float *x,
          float *y) {
  const float rescale = 65536.0f / (65536 - dropped);
  constexpr int64_t TOGETHER = 64;  // rows that a thread takes at a time
  share((rows + TOGETHER - 1) / TOGETHER, threads, [=](int64_t part, int) {
    for (int64_t row = part * TOGETHER; row < rows && row < (part + 1) * TOGETHER; row++) {
      const Key key = row_key(seed, row);
      const float *from = x + row * columns;
      float *to = y + row * columns;
      for (int64_t c = 0; c < columns; c += 2 * LANES) {
        const Masks alive = draw(key, int(c / (2 * LANES)), dropped);
        const int first = count(columns - c), second = count(columns - c - LANES);
        store(to + c, passed(load(from + c, first), rectified) * (alive.first * rescale), first);
        if (second > 0)
          store(to + c + LANES, passed(load(from + c + LANES, second), rectified) * (alive.second * rescale), second);
      }
    }
  });
}

// The gradient of the rectified kind: what of y is above zero, or no number, has passed, and lives.
void drop_rectified_back(int64_t numbers, int dropped, int threads, const float *y, const float *d_y, float *d_x) {
  const Floats rescale = spread(65536.0f / (65536 - dropped)), none{};
  constexpr int64_t TOGETHER = 2048;  // numbers that a thread takes at a time
  share((numbers + TOGETHER - 1) / TOGETHER, threads, [=](int64_t part, int) {
    for (int64_t i = part * TOGETHER; i < numbers && i < (part + 1) * TOGETHER; i += LANES) {
      const int left = count(numbers - i);
      store(d_x + i, load(y + i, left) <= none ? none : load(d_y + i, left) * rescale, left);
    }
  });
}
}
