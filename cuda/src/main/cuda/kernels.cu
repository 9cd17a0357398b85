// All kernels in one module: what nvcc makes PTX of.
#include "attention.cu"
#include "attention_halves.cu"
#include "elements.cu"
#include "embedding.cu"
#include "loss.cu"
#include "norms.cu"
#include "products.cu"
#include "sums.cu"
