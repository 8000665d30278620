// The LSTM of an MC-RNN's channels, one step: what stands between the matrix products, in one pass over memory.
//
// Rows are channels × sequences, of `width` numbers, or of four gates of so many; the projected input of a step has a
// row for each sequence, the same for all channels.
#include "vector.h"

struct Step {
  int64_t rows, sequences, width;
  int threads;
};

// step(row, h, count): numbers `h` … `h + count` of each gate of a row.
template <class Work> static void for_each(const Step &s, Work work) {
  share(s.rows, s.threads, [&](int64_t row, int) {
    for (int64_t h = 0; h < s.width; h += LANES) work(row, h, s.width - h < LANES ? int(s.width - h) : LANES);
  });
}

extern "C" {

// c' = f c + i g, h' = o tanh(c'), c the mean over the predecessors: `gates` becomes i, f, g and o.
void channels_forward(Step s, float *gates, const float *input, const float *c, float *next_h, float *next_c) {
  const int64_t width = s.width, sequences = s.sequences;
  for_each(s, [=](int64_t row, int64_t h, int count) {
    float *own = gates + row * 4 * width + h;
    const float *given = input + (row % sequences) * 4 * width + h;
    Floats sums[4];
    for (int k = 0; k < 4; k++) sums[k] = load(own + k * width, count) + load(given + k * width, count);
    const Floats i = sigmoid(sums[0]), f = sigmoid(sums[1]), g = tanh(sums[2]), o = sigmoid(sums[3]);
    const Floats memory = f * load(c + row * width + h, count) + i * g;
    store(own, i, count);
    store(own + width, f, count);
    store(own + 2 * width, g, count);
    store(own + 3 * width, o, count);
    store(next_h + row * width + h, o * tanh(memory), count);
    store(next_c + row * width + h, memory, count);
  });
}

// do = dh' tanh(c'), dc' += dh' o (1 - tanh²(c')), df = dc' c, di = dc' g, dg = dc' i; and dc' f goes on to c.
void channels_backward(Step s, const float *d_next_h, const float *d_next_c, const float *next_c, const float *gates,
                       const float *c, float *d_gates, float *d_c) {
  const int64_t width = s.width;
  for_each(s, [=](int64_t row, int64_t h, int count) {
    const float *own = gates + row * 4 * width + h;
    float *found = d_gates + row * 4 * width + h;
    const int64_t at = row * width + h;
    const Floats i = load(own, count), f = load(own + width, count);
    const Floats g = load(own + 2 * width, count), o = load(own + 3 * width, count);
    const Floats d_h = load(d_next_h + at, count), bounded = tanh(load(next_c + at, count));
    const Floats d_memory = load(d_next_c + at, count) + d_h * o * (1.0f - bounded * bounded);
    store(found, d_memory * g * i * (1.0f - i), count);
    store(found + width, d_memory * load(c + at, count) * f * (1.0f - f), count);
    store(found + 2 * width, d_memory * i * (1.0f - g * g), count);
    store(found + 3 * width, d_h * bounded * o * (1.0f - o), count);
    store(d_c + at, d_memory * f, count);
  });
}
}
