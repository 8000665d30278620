"""GPU kernels in Triton: LocalRNN and feed-forward attention, each beside its loops in `rtx.nn.naive*`.

Nothing here is imported with rtx. The dispatcher asks `obstacles` first, which does without Triton, and imports a
kernel when it calls it; what it calls "triton" is an operation's first choice on a GPU. On any CPU with Linux,
`TRITON_INTERPRET=1` in the environment has the kernels run step by step, in numpy: so most of their tests do.

**What the chip asks for.** The published LocalRNN gathers every window: M copies of each position. In plain torch it
is M steps, each with a product and half a dozen pointwise operations, and each operation a kernel of its own: it is
launched, reads B T D numbers or more from the GPU's memory and writes as many. The arithmetic between is small, so the
chip waits for launches and for its memory.

**One kernel for all M steps** (`local_rnn_forward`). A program holds a tile of 16 or 32 windows. Of them

- the state h_i (and an LSTM's c_i) stays in registers from the first step to the last, in float32;
- the weights W_hh of all gates are read once and stay in shared memory, which bounds D: G D² numbers of 2 bytes
  (bfloat16), or of 8, as a float32 is multiplied as two numbers of tf32 (`plan.shared_bytes`, `obstacles.no_room`);
- the inputs W_ih x_t + b of step i are read from the GPU's memory: one product of torch's, over all positions at once,
  has made them, as a position's projection is the same in all of its M windows. Windows stand beside one another, so
  at step i a tile reads the rows that it read at step i - 1, one further on: they are in the cache.

Eq. (2)-(3) of Wang et al. (2019), h_i = RNN(x_{t-M+i}, h_{i-1}), is the loop over i in `forward_kernel`; `cells` holds
the gates' arithmetic; `tiles.recurrent_product` is W_hh h, `tl.dot`, on the tensor cores, which add up in float32. The
zero vectors before a sequence are rows of the input like others, so the biases act on them.

**The way back** (`local_rnn_backward`). Nothing but the layer's input is kept for it. The forward kernel runs again and
this time leaves each step's gates and states; `backward_kernel` walks from step M to step 1, with dh in registers and
the weights in shared memory as before; three products of torch's form the gradients of x, W_ih and W_hh. What a
position gets from its M windows is added up by `collect_kernel` in one order: no atomic additions, so every run gives
the same numbers.

**Wider layers** (`steps`). Weights that no program can hold are left to torch's products, cuBLAS on a GPU, which are
large then. What stands between two of them, a step's gates, is one kernel forward and one backward, with the same
arithmetic from `cells`; `rtx.nn.kernels.local_rnn` has the loop around it, the same as on the CPU. Gates are kept.

**Feed-forward attention** (`pooling_forward`, `pooling_backward`). A program sums exp(e_t) and exp(e_t) h_t over 512
steps, a tile of 32 at a time, without ever storing a state; a second, small kernel adds these sums up. |e_t| < 1, as it
is a tanh, so the exponentials need no running maximum. The way back computes the states again.

**Numbers.** float32 products are done in three parts by tf32 ("tf32x3"), as exact as float32's own, as long as torch's
setting `torch.get_float32_matmul_precision()` is "highest", else in one, as torch does then. The tests hold float32 to
1e-5 and bfloat16 to 1e-2. Tiles of 32 windows keep a thread within its 255 registers (`plan`); which sizes are fastest
has not been measured yet.
"""
