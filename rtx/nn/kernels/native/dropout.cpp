// Dropout whose mask is never kept: it depends on the seed and the place alone, so the backward pass draws it again.
#include "masks.h"

extern "C" {

// y = x ∘ mask / (1 - rate), of (rows, columns) numbers; its own gradient, too, with the gradients in place of x.
void drop(int64_t rows, int64_t columns, uint64_t seed, int dropped, int threads, const float *x, float *y) {
  const float rescale = 65536.0f / (65536 - dropped);
  constexpr int64_t TOGETHER = 64;  // rows that a thread takes at a time
  share((rows + TOGETHER - 1) / TOGETHER, threads, [=](int64_t part, int) {
    for (int64_t row = part * TOGETHER; row < rows && row < (part + 1) * TOGETHER; row++) {
      const Key key = row_key(seed, row);
      const float *from = x + row * columns;
      float *to = y + row * columns;
      for (int64_t c = 0; c < columns; c += 2 * LANES) {
        const Masks alive = draw(key, int(c / (2 * LANES)), dropped);
        const int64_t first = columns - c, second = first - LANES;
        store(to + c, load(from + c, first < LANES ? int(first) : LANES) * (alive.first * rescale),
              first < LANES ? int(first) : LANES);
        if (second > 0)
          store(to + c + LANES, load(from + c + LANES, second < LANES ? int(second) : LANES) * (alive.second * rescale),
                second < LANES ? int(second) : LANES);
      }
    }
  });
}
}
