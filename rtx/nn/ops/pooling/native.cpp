// Feed-forward attention's context. A state is in a register or two, and the backward pass computes it again.
//
// Raffel & Ellis (2015), Eq. 1-2. A block is four vectors of steps of one sequence, side by side, for one unit after
// the other. A score is a tanh and so lies between -1 and 1. Therefore the softmax needs no running maximum.
#include "vector.h"

constexpr int VECTORS = 4, STEPS = VECTORS * LANES;
constexpr float FLOOR = 0.01f;

struct Layer {
  int64_t batch, inputs, units;         // B, F, D
  int64_t sequence, step, input;        // distances between these in x
  const float *w, *score, *shift;       // (F + 1, D), the bias last; (D) and (1), or null for the mean
  int printed, threads;                 // the leak: max(a, .01) if printed, else max(a, .01 a)
};

// Read the inputs of a block: F rows, and a last row that is 1 where a step is real and 0 elsewhere.
static void read(const Layer &layer, const float *x, int64_t start, int64_t length, float *inputs) {
  const int64_t count = length - start < STEPS ? length - start : STEPS, F = layer.inputs;
  std::memset(inputs, 0, sizeof(float) * (F + 1) * STEPS);
  for (int64_t f = 0; f < F; f++)
    for (int64_t t = 0; t < count; t++) inputs[f * STEPS + t] = x[(start + t) * layer.step + f * layer.input];
  for (int64_t t = 0; t < count; t++) inputs[F * STEPS + t] = 1;
}

// The input of unit d's LReLU at each step.
static inline void before_leak(const Layer &layer, const float *inputs, int64_t d, Floats *a) {
  for (int v = 0; v < VECTORS; v++) a[v] = spread(layer.w[layer.inputs * layer.units + d]);
  for (int64_t f = 0; f < layer.inputs; f++)
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) a[v] += load(inputs + f * STEPS + v * LANES) * layer.w[f * layer.units + d];
}

template <bool PRINTED> static inline Floats leak(Floats a) {
  return PRINTED ? larger(a, spread(FLOOR)) : larger(a, FLOOR * a);
}

template <bool PRINTED> static inline Floats slope(Floats a) {
  const Floats one = spread(1.0f);
  return PRINTED ? (a >= FLOOR ? one : Floats{}) : (a > 0.0f ? one : spread(FLOOR));
}

// e_t = tanh(w_hc · h_t + b_hc) and exp(e_t), which is zero where a step is not real; and states · pull if given.
template <bool PRINTED>
static void weigh(const Layer &layer, const float *inputs, const float *pull, Floats *e, Floats *mass, Floats *pulled) {
  Floats sums[VECTORS] = {}, along[VECTORS] = {};
  for (int64_t d = 0; layer.score && d < layer.units; d++) {
    Floats a[VECTORS];
    before_leak(layer, inputs, d, a);
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) {
      const Floats h = leak<PRINTED>(a[v]);
      sums[v] += h * layer.score[d];
      if (pull) along[v] += h * pull[d];
    }
  }
  for (int v = 0; v < VECTORS; v++) {
    const Floats real = load(inputs + layer.inputs * STEPS + v * LANES);
    e[v] = layer.score ? tanh(sums[v] + layer.shift[0]) : Floats{};
    mass[v] = layer.score ? exp(e[v]) * real : real;
    pulled[v] = along[v];
  }
}

// Σ exp(e_t) and Σ exp(e_t) h_t of one sequence; `totals` has a vector for each unit.
template <bool PRINTED>
static void add_up(const Layer &layer, const float *x, int64_t length, float *inputs, Floats *totals, float *mass,
                   float *total) {
  Floats sums{};
  for (int64_t d = 0; d < layer.units; d++) totals[d] = Floats{};
  for (int64_t start = 0; start < length; start += STEPS) {
    Floats e[VECTORS], masses[VECTORS], unused[VECTORS];
    read(layer, x, start, length, inputs);
    weigh<PRINTED>(layer, inputs, nullptr, e, masses, unused);
    for (int v = 0; v < VECTORS; v++) sums += masses[v];
    for (int64_t d = 0; d < layer.units; d++) {
      Floats a[VECTORS];
      before_leak(layer, inputs, d, a);
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; v++) totals[d] += masses[v] * leak<PRINTED>(a[v]);
    }
  }
  *mass = sum(sums);
  for (int64_t d = 0; d < layer.units; d++) total[d] = sum(totals[d]);
}

struct Gradients {
  float *w, *score, *shift, *x;  // (B, F + 1, D), (B, D), (B): one for each sequence; (B, T, F) or null
};

// The gradients of one sequence. exp(e_t) h_t has the gradient `pull`, (D), and exp(e_t) the gradient -`level`.
template <bool PRINTED>
static void go_back(const Layer &layer, const float *x, int64_t length, const float *pull, float level, float *inputs,
                    Floats *totals, Gradients found) {
  const int64_t F = layer.inputs, D = layer.units;
  Floats *of_score = totals + (F + 1) * D, shift{};
  for (int64_t i = 0; i < (F + 2) * D; i++) totals[i] = Floats{};
  for (int64_t start = 0; start < length; start += STEPS) {
    Floats e[VECTORS], mass[VECTORS], s[VECTORS];  // s: the gradient of w_hc · h_t + b_hc
    read(layer, x, start, length, inputs);
    weigh<PRINTED>(layer, inputs, pull, e, mass, s);
    for (int v = 0; v < VECTORS; v++) shift += s[v] = mass[v] * (s[v] - level) * (1.0f - e[v] * e[v]);
    float *d_inputs = inputs + (F + 1) * STEPS;
    std::memset(d_inputs, 0, sizeof(float) * F * STEPS);
    for (int64_t d = 0; d < D; d++) {
      Floats a[VECTORS];
      before_leak(layer, inputs, d, a);
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; v++) {
        if (layer.score) of_score[d] += s[v] * leak<PRINTED>(a[v]);
        const Floats d_h = layer.score ? mass[v] * pull[d] + s[v] * layer.score[d] : mass[v] * pull[d];
        a[v] = d_h * slope<PRINTED>(a[v]);
      }
      for (int64_t f = 0; f <= F; f++) {
        Floats of_w{};
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) of_w += a[v] * load(inputs + f * STEPS + v * LANES);
        totals[f * D + d] += of_w;
        for (int v = 0; found.x && f < F && v < VECTORS; v++) {
          float *to = d_inputs + f * STEPS + v * LANES;
          store(to, load(to) + a[v] * layer.w[f * D + d]);
        }
      }
    }
    for (int64_t t = 0; found.x && t < STEPS && start + t < length; t++)
      for (int64_t f = 0; f < F; f++) found.x[(start + t) * F + f] = d_inputs[f * STEPS + t];
  }
  for (int64_t i = 0; i < (F + 1) * D; i++) found.w[i] = sum(totals[i]);
  for (int64_t d = 0; d < D; d++) found.score[d] = sum(of_score[d]);
  *found.shift = sum(shift);
}

extern "C" {

void pooling_forward(Layer layer, const float *x, const int64_t *lengths, float *mass, float *total) {
  share(layer.batch, layer.threads, [=](int64_t b, int) {
    std::vector<float> inputs((layer.inputs + 1) * STEPS);
    std::vector<Floats> totals(layer.units);
    (layer.printed ? add_up<true> : add_up<false>)(layer, x + b * layer.sequence, lengths[b], inputs.data(),
                                                   totals.data(), mass + b, total + b * layer.units);
  });
}

// The gradient of x has `longest` steps.
void pooling_backward(Layer layer, const float *x, const int64_t *lengths, int64_t longest, const float *pull,
                      const float *level, Gradients found) {
  share(layer.batch, layer.threads, [=](int64_t b, int) {
    const int64_t F = layer.inputs, D = layer.units;
    std::vector<float> inputs((2 * F + 1) * STEPS);
    std::vector<Floats> totals((F + 2) * D);
    const Gradients own = {found.w + b * (F + 1) * D, found.score + b * D, found.shift + b,
                           found.x ? found.x + b * longest * F : nullptr};
    (layer.printed ? go_back<true> : go_back<false>)(layer, x + b * layer.sequence, lengths[b], pull + b * D, level[b],
                                                     inputs.data(), totals.data(), own);
  });
}
}
