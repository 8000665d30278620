// Causal attention with dropout on its weights, eight queries at a time, so that their scores fit the core's first cache.
//
// Dao et al. (2022), FlashAttention: the forward pass stores only the largest score and the sum of each row, and the
// backward pass computes the weights again. (The logarithm of the sum would be lost beside a large score.) The keys and values of a head are first copied into an order in which loops can read them,
// with their widths filled up to whole vectors with zeros.
#include "masks.h"

#include <cmath>

constexpr int QUERIES = 8;

// Distances in memory in a (B, H, T, K) tensor; the K numbers are side by side.
struct Strides {
  int64_t batch, head, time;
};

struct Shape {
  int64_t batch, heads, length, width;
  Strides q, k, v, out;  // `out` is for the output and all gradients
  float scale;           // 1 / sqrt(K)
  int zeros;             // of 65,536 weights
  uint64_t seed;
  int threads;
};

static int64_t whole(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// Copy a head's rows, (T, K), into the rows of (T, `columns`).
static void pack(const float *from, int64_t stride, int64_t length, int64_t width, float *to, int64_t columns) {
  for (int64_t t = 0; t < length; t++) {
    std::memset(to + t * columns, 0, sizeof(float) * columns);
    std::memcpy(to + t * columns, from + t * stride, sizeof(float) * width);
  }
}

// Copy them as columns, (K, `columns`), times `scale`.
static void pack_columns(const float *from, int64_t stride, int64_t length, int64_t width, float *to, int64_t columns,
                         float scale) {
  std::memset(to, 0, sizeof(float) * width * columns);
  for (int64_t t = 0; t < length; t++)
    for (int64_t k = 0; k < width; k++) to[k * columns + t] = from[t * stride + k] * scale;
}

// sums[r] += the products of row r of `rows` with the LANES columns from s on of `columns`, (K, S).
static inline void products(Floats *sums, const float *const *rows, const float *columns, int64_t S, int64_t K) {
  for (int64_t k = 0; k < K; k++) {
    const Floats column = load(columns + k * S);
#pragma GCC unroll 8
    for (int r = 0; r < QUERIES; r++) sums[r] += rows[r][k] * column;
  }
}

// sums[r] += Σ_s weights[r, s] · row s, of LANES columns of `rows`, (S, `columns`).
static inline void gather(Floats *sums, const float *weights, int64_t S, const float *rows, int64_t columns,
                          int64_t keys) {
  for (int64_t s = 0; s < keys; s++) {
    const Floats row = load(rows + s * columns);
#pragma GCC unroll 8
    for (int r = 0; r < QUERIES; r++) sums[r] += weights[r * S + s] * row;
  }
}

// row s += Σ_r weights[r, s] · rows[r], of LANES columns of `to`, (S, `columns`).
static inline void scatter(float *to, int64_t columns, const float *weights, int64_t S, const Floats *rows,
                           int64_t keys) {
  for (int64_t s = 0; s < keys; s++) {
    Floats row = load(to + s * columns);
#pragma GCC unroll 8
    for (int r = 0; r < QUERIES; r++) row += weights[r * S + s] * rows[r];
    store(to + s * columns, row);
  }
}

static inline Floats from_key(int64_t s) {
  return __builtin_convertvector(lane_numbers() + int32_t(s), Floats);
}

// Eight queries of a head. Those beyond the end repeat the last one and are not written.
struct Block {
  const float *rows[QUERIES];
  Key keys[QUERIES];
  int64_t start, count, seen;  // positions start … start + count - 1 see keys 0 … seen - 1

  Block(const Shape &shape, int64_t head, int64_t start, const float *q) : start(start) {
    count = shape.length - start < QUERIES ? shape.length - start : QUERIES;
    seen = start + count;
    for (int r = 0; r < QUERIES; r++) {
      const int64_t t = start + (r < count ? r : count - 1);
      rows[r] = q + t * shape.q.time;
      keys[r] = row_key(shape.seed, head * shape.length + t);
    }
  }
};

// The working memory of a thread, in numbers: see the pointers in the functions below.
struct Workspace {
  int64_t S, C;  // keys and columns, rounded up
  Workspace(const Shape &shape) : S(whole(shape.length, 2 * LANES)), C(whole(shape.width, LANES)) {}
  int64_t forward(int64_t K) const { return S * K + S * C + QUERIES * S; }
  int64_t backward(int64_t K) const { return 2 * S * K + 3 * S * C + 2 * QUERIES * S; }
};

// Eq. (5) for a block: weights[r, s] = exp(score - top) after dropout, and 1 / their sum before it. The keys are already
// divided by sqrt(K).
static void weigh(const Shape &shape, const Block &block, const float *keys, float *weights, int64_t S, float *tops,
                  float *shares) {
  Floats top[QUERIES], total[QUERIES] = {};
  for (auto &x : top) x = spread(-INFINITY);
  for (int64_t s = 0; s < block.seen; s += LANES) {
    Floats scores[QUERIES] = {};
    products(scores, block.rows, keys + s, S, shape.width);
    for (int r = 0; r < QUERIES; r++) {
      Floats x = scores[r];
      if (s + LANES > block.start) x = from_key(s) <= float(block.start + r) ? x : spread(-INFINITY);
      top[r] = larger(top[r], x);
      store(weights + r * S + s, x);
    }
  }
  for (int r = 0; r < QUERIES; r++) {
    tops[r] = largest(top[r]);
    const bool empty = tops[r] == -INFINITY;  // torch returns zeros for such a row
    if (empty) tops[r] = 0;
    for (int64_t s = 0; s < block.seen; s += 2 * LANES) {
      float *at = weights + r * S + s;
      const Floats none{}, here = from_key(s) <= float(block.start + r) ? exp(load(at) - tops[r]) : none;
      const Floats there = from_key(s + LANES) <= float(block.start + r) ? exp(load(at + LANES) - tops[r]) : none;
      total[r] += here + there;
      const Masks alive = draw(block.keys[r], int(s / (2 * LANES)), shape.zeros);
      store(at, here * alive.first);
      store(at + LANES, there * alive.second);
    }
    shares[r] = empty ? 0 : 1 / sum(total[r]);
  }
}

// For the backward pass: the weights after dropout, and the gradients of the scores, (Q, S) each.
static void weigh_back(const Shape &shape, const Block &block, const float *const *d_rows, const float *keys,
                       const float *values, const float *tops, const float *shares, const float *dots, float *weights,
                       float *d_scores, int64_t S) {
  const float rescale = 65536.0f / (65536 - shape.zeros);
  for (int64_t s = 0; s < whole(block.seen, 2 * LANES); s += LANES) {
    Floats scores[QUERIES] = {}, d_weights[QUERIES] = {};
    products(scores, block.rows, keys + s, S, shape.width);
    products(d_weights, d_rows, values + s, S, shape.width);
    for (int r = 0; r < QUERIES; r++) {
      const Masks alive = draw(block.keys[r], int(s / (2 * LANES)), shape.zeros);
      const Floats none{}, kept = rescale * (s % (2 * LANES) ? alive.second : alive.first);
      Floats weight = exp(scores[r] - tops[r]) * shares[r];
      if (s + LANES > block.start) weight = from_key(s) <= float(block.start + r) ? weight : none;
      if (r >= block.count) weight = none;
      store(weights + r * S + s, weight * kept);
      // with A = P ∘ M / (1 - dropout): dS = A ∘ dO Vᵀ - P ∘ <dO, O>
      store(d_scores + r * S + s, weight * (kept * d_weights[r] - dots[r]));
    }
  }
}

extern "C" {

int64_t attention_workspace(Shape shape, int backward) {
  const Workspace space(shape);
  return backward ? space.backward(shape.width) : space.forward(shape.width);
}

void attention_forward(Shape shape, const float *q, const float *k, const float *v, float *out, float *rows,
                       float *workspace) {
  const Workspace space(shape);
  const int64_t S = space.S, C = space.C, T = shape.length, K = shape.width;
  const float rescale = 65536.0f / (65536 - shape.zeros);
  share(shape.batch * shape.heads, shape.threads, [&](int64_t head, int worker) {
    const int64_t b = head / shape.heads, h = head % shape.heads;
    float *keys = workspace + worker * space.forward(K), *values = keys + S * K, *weights = values + S * C;
    pack_columns(k + b * shape.k.batch + h * shape.k.head, shape.k.time, T, K, keys, S, shape.scale);
    pack(v + b * shape.v.batch + h * shape.v.head, shape.v.time, T, K, values, C);
    for (int64_t start = 0; start < T; start += QUERIES) {
      const Block block(shape, head, start, q + b * shape.q.batch + h * shape.q.head);
      float tops[QUERIES], shares[QUERIES];
      weigh(shape, block, keys, weights, S, tops, shares);
      for (int64_t r = 0; r < block.count; r++) {
        rows[2 * (head * T + start + r)] = tops[r];
        rows[2 * (head * T + start + r) + 1] = shares[r];
      }
      for (int64_t c = 0; c < K; c += LANES) {
        Floats found[QUERIES] = {};
        gather(found, weights, S, values + c, C, block.seen);
        float *to = out + b * shape.out.batch + h * shape.out.head + start * shape.out.time + c;
        for (int64_t r = 0; r < block.count; r++)
          store(to + r * shape.out.time, found[r] * (rescale * shares[r]), K - c < LANES ? int(K - c) : LANES);
      }
    }
  });
}

// Fills `d_q`, `d_k` and `d_v`. `d_out` has the memory layout of `out`.
void attention_backward(Shape shape, const float *q, const float *k, const float *v, const float *out,
                        const float *rows, const float *d_out, float *d_q, float *d_k, float *d_v,
                        float *workspace) {
  const Workspace space(shape);
  const int64_t S = space.S, C = space.C, T = shape.length, K = shape.width;
  share(shape.batch * shape.heads, shape.threads, [&](int64_t head, int worker) {
    const int64_t b = head / shape.heads, h = head % shape.heads;
    const int64_t to = b * shape.out.batch + h * shape.out.head;
    const float *k_head = k + b * shape.k.batch + h * shape.k.head, *v_head = v + b * shape.v.batch + h * shape.v.head;
    float *key_columns = workspace + worker * space.backward(K), *value_columns = key_columns + S * K;
    float *keys = value_columns + S * K, *d_keys = keys + S * C, *d_values = d_keys + S * C;
    float *weights = d_values + S * C, *d_scores = weights + QUERIES * S;
    pack_columns(k_head, shape.k.time, T, K, key_columns, S, shape.scale);
    pack_columns(v_head, shape.v.time, T, K, value_columns, S, 1);
    pack(k_head, shape.k.time, T, K, keys, C);
    std::memset(d_keys, 0, sizeof(float) * 2 * S * C);
    for (int64_t start = 0; start < T; start += QUERIES) {
      const Block block(shape, head, start, q + b * shape.q.batch + h * shape.q.head);
      const float *d_rows[QUERIES];
      float tops[QUERIES], shares[QUERIES], dots[QUERIES] = {};
      for (int r = 0; r < QUERIES; r++) {
        const int64_t t = start + (r < block.count ? r : block.count - 1), row = to + t * shape.out.time;
        d_rows[r] = d_out + row;
        tops[r] = rows[2 * (head * T + t)];
        shares[r] = rows[2 * (head * T + t) + 1];
        for (int64_t c = 0; c < K; c++) dots[r] += d_out[row + c] * out[row + c];
      }
      weigh_back(shape, block, d_rows, key_columns, value_columns, tops, shares, dots, weights, d_scores, S);
      for (int64_t c = 0; c < K; c += LANES) {
        const int columns = K - c < LANES ? int(K - c) : LANES;
        Floats found[QUERIES] = {}, queries[QUERIES], d_here[QUERIES];
        gather(found, d_scores, S, keys + c, C, block.seen);
        for (int r = 0; r < QUERIES; r++) {
          queries[r] = load(block.rows[r] + c, columns) * shape.scale;
          d_here[r] = load(d_rows[r] + c, columns);
          if (r < block.count) store(d_q + to + (start + r) * shape.out.time + c, found[r] * shape.scale, columns);
        }
        scatter(d_keys + c, C, d_scores, S, queries, block.seen);
        scatter(d_values + c, C, weights, S, d_here, block.seen);
      }
    }
    for (int64_t t = 0; t < T; t++) {
      std::memcpy(d_k + to + t * shape.out.time, d_keys + t * C, sizeof(float) * K);
      std::memcpy(d_v + to + t * shape.out.time, d_values + t * C, sizeof(float) * K);
    }
  });
}
}
