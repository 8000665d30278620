// One step of all windows of a LocalRNN: all that is between two matrix products, in one pass over memory.
//
// Arrays have features first, (D, B, T): a row of T numbers is one feature of one sequence. The projected inputs of
// step i are a slice of a longer array, so their rows are `stride` numbers apart. Both cells take the same arguments; an
// array that a cell does not have is not touched.
#include "vector.h"

struct Sizes {
  int64_t features, sequences, length, stride;
  int threads;

  int64_t gate() const { return features * sequences * length; }   // numbers of a gate
  int64_t input() const { return features * sequences * stride; }  // numbers from one gate's input to the next
};

// step(at, x, count): numbers at … at + count of a state, whose inputs begin at x.
template <class Step> static void for_each(const Sizes &s, Step step) {
  share(s.features, s.threads, [&](int64_t feature, int) {
    for (int64_t row = feature * s.sequences; row < (feature + 1) * s.sequences; row++)
      for (int64_t t = 0; t < s.length; t += LANES) {
        const int64_t left = s.length - t;
        step(row * s.length + t, row * s.stride + t, left < LANES ? int(left) : LANES);
      }
  });
}

static void add(float *to, Floats x, int count) { store(to, load(to, count) + x, count); }

extern "C" {

// Forward: `gates` holds the recurrent products and becomes the gates.

// h' = n + z (h - n), n = tanh(x_n + r a_n), with a_n = product + bias
void gru_forward(Sizes s, const float *input, float *gates, const float *bias, const float *h, const float *,
                 float *candidate, float *next_h, float *) {
  const int64_t gate = s.gate(), part = s.input(), feature = s.sequences * s.length;
  for_each(s, [=](int64_t at, int64_t x, int count) {
    const Floats r = sigmoid(load(gates + at, count) + load(input + x, count));
    const Floats z = sigmoid(load(gates + gate + at, count) + load(input + part + x, count));
    const Floats a = load(gates + 2 * gate + at, count) + bias[at / feature];
    const Floats n = tanh(load(input + 2 * part + x, count) + r * a);
    store(gates + at, r, count);
    store(gates + gate + at, z, count);
    store(gates + 2 * gate + at, a, count);
    store(candidate + at, n, count);
    store(next_h + at, n + z * (load(h + at, count) - n), count);
  });
}

// c' = f c + i g, h' = o tanh(c')
void lstm_forward(Sizes s, const float *input, float *gates, const float *, const float *, const float *c,
                  float *tanh_c, float *next_h, float *next_c) {
  const int64_t gate = s.gate(), part = s.input();
  for_each(s, [=](int64_t at, int64_t x, int count) {
    Floats sums[4];
    for (int k = 0; k < 4; k++) sums[k] = load(gates + k * gate + at, count) + load(input + k * part + x, count);
    const Floats found[4] = {sigmoid(sums[0]), sigmoid(sums[1]), tanh(sums[2]), sigmoid(sums[3])};  // i, f, g, o
    const Floats memory = found[1] * load(c + at, count) + found[0] * found[2], bounded = tanh(memory);
    for (int k = 0; k < 4; k++) store(gates + k * gate + at, found[k], count);
    store(tanh_c + at, bounded, count);
    store(next_h + at, found[3] * bounded, count);
    store(next_c + at, memory, count);
  });
}

// Backward: from the gradients of h' and c' to those of the recurrent products, of h (without the product's part) and
// of c. The gradient of the input is added to what is there.

// dz = dh' (h - n), dn = dh' (1 - z), dr = dn' a_n with dn' = dn (1 - n²), da_n = dn' r, dh = dh' z
void gru_backward(Sizes s, float *d_input, const float *d_h, const float *, const float *gates, const float *candidate,
                  const float *h, const float *, float *d_gates, float *direct, float *) {
  const int64_t gate = s.gate(), part = s.input();
  for_each(s, [=](int64_t at, int64_t x, int count) {
    const Floats d = load(d_h + at, count), n = load(candidate + at, count);
    const Floats r = load(gates + at, count), z = load(gates + gate + at, count);
    const Floats d_n = d * (1.0f - z) * (1.0f - n * n);
    const Floats d_r = d_n * load(gates + 2 * gate + at, count) * r * (1.0f - r);
    const Floats d_z = d * (load(h + at, count) - n) * z * (1.0f - z);
    store(d_gates + at, d_r, count);
    store(d_gates + gate + at, d_z, count);
    store(d_gates + 2 * gate + at, d_n * r, count);
    add(d_input + x, d_r, count);
    add(d_input + part + x, d_z, count);
    add(d_input + 2 * part + x, d_n, count);
    store(direct + at, d * z, count);
  });
}

// do = dh' tanh(c'), dc' += dh' o (1 - tanh²(c')), df = dc' c, di = dc' g, dg = dc' i, dc = dc' f
void lstm_backward(Sizes s, float *d_input, const float *d_h, const float *d_c, const float *gates,
                   const float *tanh_c, const float *, const float *c, float *d_gates, float *, float *d_c_before) {
  const int64_t gate = s.gate(), part = s.input();
  for_each(s, [=](int64_t at, int64_t x, int count) {
    const Floats d = load(d_h + at, count), bounded = load(tanh_c + at, count);
    const Floats i = load(gates + at, count), f = load(gates + gate + at, count);
    const Floats g = load(gates + 2 * gate + at, count), o = load(gates + 3 * gate + at, count);
    const Floats d_memory = load(d_c + at, count) + d * o * (1.0f - bounded * bounded);
    const Floats found[4] = {d_memory * g * i * (1.0f - i), d_memory * load(c + at, count) * f * (1.0f - f),
                             d_memory * i * (1.0f - g * g), d * bounded * o * (1.0f - o)};
    for (int k = 0; k < 4; k++) {
      store(d_gates + k * gate + at, found[k], count);
      add(d_input + k * part + x, found[k], count);
    }
    store(d_c_before + at, d_memory * f, count);
  });
}
}
