// One step of all windows of a LocalRNN: what stands between the matrix products, in one pass over memory.
//
// Arrays have features first, (D, B, T): a row of T numbers is one feature of one sequence. The projected inputs of
// step i are a slice of a longer array: their rows are `stride` numbers apart.
#include "vector.h"

struct Sizes {
  int64_t features, sequences, length, stride;
  int threads;
};

// step(place, input, count): numbers `place` … `place + count` of an array, whose inputs begin at `input`.
template <class Step> static void for_each(const Sizes &s, Step step) {
  share(s.features, s.threads, [&](int64_t feature, int) {
    for (int64_t row = feature * s.sequences; row < (feature + 1) * s.sequences; row++)
      for (int64_t t = 0; t < s.length; t += LANES) {
        const int64_t left = s.length - t;
        step(row * s.length + t, row * s.stride + t, left < LANES ? int(left) : LANES);
      }
  });
}

extern "C" {

// h' = tanh(x + a), a the recurrent product: `gates` becomes h'.
void rnn_forward(Sizes s, float *gates, const float *input) {
  for_each(s, [=](int64_t i, int64_t x, int n) { store(gates + i, tanh(load(gates + i, n) + load(input + x, n)), n); });
}

// da = dh' (1 - h'²), which is the input's gradient, too.
void rnn_backward(Sizes s, const float *d_next, const float *gates, float *d_gates, float *d_input) {
  for_each(s, [=](int64_t i, int64_t x, int n) {
    const Floats h = load(gates + i, n), d = load(d_next + i, n) * (1.0f - h * h);
    store(d_gates + i, d, n);
    store(d_input + x, load(d_input + x, n) + d, n);
  });
}

// h' = n + z (h - n), n = tanh(x_n + r a_n): `gates` becomes r, z and a_n = product + bias.
void gru_forward(Sizes s, float *gates, const float *input, const float *bias, const float *h, float *candidate,
                 float *next) {
  const int64_t gate = s.features * s.sequences * s.length, part = s.features * s.sequences * s.stride;
  const int64_t feature = s.sequences * s.length;
  for_each(s, [=](int64_t i, int64_t x, int count) {
    const Floats r = sigmoid(load(gates + i, count) + load(input + x, count));
    const Floats z = sigmoid(load(gates + gate + i, count) + load(input + part + x, count));
    const Floats a = load(gates + 2 * gate + i, count) + bias[i / feature];
    const Floats n = tanh(load(input + 2 * part + x, count) + r * a);
    store(gates + i, r, count);
    store(gates + gate + i, z, count);
    store(gates + 2 * gate + i, a, count);
    store(candidate + i, n, count);
    store(next + i, n + z * (load(h + i, count) - n), count);
  });
}

// dz = dh' (h - n), dn = dh' (1 - z), dr = dn' a_n with dn' = dn (1 - n²), da_n = dn' r; and dh' z goes on to h.
void gru_backward(Sizes s, const float *d_next, const float *gates, const float *candidate, const float *h,
                  float *d_gates, float *d_input, float *through) {
  const int64_t gate = s.features * s.sequences * s.length, part = s.features * s.sequences * s.stride;
  for_each(s, [=](int64_t i, int64_t x, int count) {
    const Floats d_h = load(d_next + i, count), n = load(candidate + i, count);
    const Floats r = load(gates + i, count), z = load(gates + gate + i, count);
    const Floats d_n = d_h * (1.0f - z) * (1.0f - n * n);
    const Floats d_r = d_n * load(gates + 2 * gate + i, count) * r * (1.0f - r);
    const Floats d_z = d_h * (load(h + i, count) - n) * z * (1.0f - z);
    store(d_gates + i, d_r, count);
    store(d_gates + gate + i, d_z, count);
    store(d_gates + 2 * gate + i, d_n * r, count);
    store(d_input + x, load(d_input + x, count) + d_r, count);
    store(d_input + part + x, load(d_input + part + x, count) + d_z, count);
    store(d_input + 2 * part + x, load(d_input + 2 * part + x, count) + d_n, count);
    store(through + i, d_h * z, count);
  });
}

// c' = f c + i g, h' = o tanh(c'): `gates` becomes i, f, g and o.
void lstm_forward(Sizes s, float *gates, const float *input, const float *c, float *squashed, float *next_h,
                  float *next_c) {
  const int64_t gate = s.features * s.sequences * s.length, part = s.features * s.sequences * s.stride;
  for_each(s, [=](int64_t at, int64_t x, int count) {
    Floats sums[4];
    for (int k = 0; k < 4; k++) sums[k] = load(gates + k * gate + at, count) + load(input + k * part + x, count);
    const Floats i = sigmoid(sums[0]), f = sigmoid(sums[1]), g = tanh(sums[2]), o = sigmoid(sums[3]);
    const Floats memory = f * load(c + at, count) + i * g, bounded = tanh(memory);
    store(gates + at, i, count);
    store(gates + gate + at, f, count);
    store(gates + 2 * gate + at, g, count);
    store(gates + 3 * gate + at, o, count);
    store(squashed + at, bounded, count);
    store(next_h + at, o * bounded, count);
    store(next_c + at, memory, count);
  });
}

// do = dh' tanh(c'), dc' += dh' o (1 - tanh²(c')), df = dc' c, di = dc' g, dg = dc' i; and dc' f goes on to c.
void lstm_backward(Sizes s, const float *d_next_h, const float *d_next_c, const float *gates, const float *squashed,
                   const float *c, float *d_gates, float *d_input, float *d_c) {
  const int64_t gate = s.features * s.sequences * s.length, part = s.features * s.sequences * s.stride;
  for_each(s, [=](int64_t at, int64_t x, int count) {
    const Floats d_h = load(d_next_h + at, count), bounded = load(squashed + at, count);
    const Floats i = load(gates + at, count), f = load(gates + gate + at, count);
    const Floats g = load(gates + 2 * gate + at, count), o = load(gates + 3 * gate + at, count);
    const Floats d_memory = load(d_next_c + at, count) + d_h * o * (1.0f - bounded * bounded);
    const Floats found[4] = {d_memory * g * i * (1.0f - i), d_memory * load(c + at, count) * f * (1.0f - f),
                             d_memory * i * (1.0f - g * g), d_h * bounded * o * (1.0f - o)};
    for (int k = 0; k < 4; k++) {
      store(d_gates + k * gate + at, found[k], count);
      store(d_input + k * part + x, load(d_input + k * part + x, count) + found[k], count);
    }
    store(d_c + at, d_memory * f, count);
  });
}
}
