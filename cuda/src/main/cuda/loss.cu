// Cross-entropy over a vocabulary that shards may divide; a block per row of logits.
//
// What a shard knows of a row, numbers 3 i to 3 i + 2: the largest logit, the sum of exp(logit - largest), the logit of the
// target or 0 if another shard has it.
#include "tensors.cuh"

// logits become exp(logit - largest) if a gradient is wanted.
extern "C" __global__ void softmaxPart(Floats logits, const int* __restrict__ targets, TokenRows range, float* __restrict__ part,
                                       int gradient) {
    int row = blockIdx.x, columns = range.count, target = range.of(targets[row]);
    float* values = logits.row(row);
    float largest = -INFINITY;
    for (int j = threadIdx.x; j < columns; j += blockDim.x) {
        largest = fmaxf(largest, values[j]);
    }
    largest = blockMax(largest);
    if (threadIdx.x == 0) {
        part[3LL * row] = largest;
        part[3LL * row + 2] = target < 0 ? 0 : values[target];
    }
    // the target's logit is read before its thread overwrites it
    __syncthreads();
    float sum = 0;
    for (int j = threadIdx.x; j < columns; j += blockDim.x) {
        float e = expf(values[j] - largest);
        sum += e;
        if (gradient) {
            values[j] = e;
        }
    }
    sum = blockSum(sum);
    if (threadIdx.x == 0) {
        part[3LL * row + 1] = sum;
    }
}

// losses[row] = -log softmax(logits[row])[target]; logits become (softmax - onehot) * gradientScale unless that is 0.
extern "C" __global__ void crossEntropy(ConstFloats parts, int shards, int shard, Floats logits, const int* __restrict__ targets,
                                        TokenRows range, float* __restrict__ losses, float gradientScale) {
    int row = blockIdx.x;
    float largest = -INFINITY;
    for (int s = 0; s < shards; s++) {
        largest = fmaxf(largest, parts.at(s, 3 * row));
    }
    float sum = 0, logit = 0;
    for (int s = 0; s < shards; s++) {
        sum += parts.at(s, 3 * row + 1) * expf(parts.at(s, 3 * row) - largest);
        logit += parts.at(s, 3 * row + 2);
    }
    if (threadIdx.x == 0) {
        losses[row] = logf(sum) + (largest - logit);
    }
    if (gradientScale != 0) {
        float share = expf(parts.at(shard, 3 * row) - largest) / sum;
        int target = range.of(targets[row]);
        for (int j = threadIdx.x; j < range.count; j += blockDim.x) {
            float probability = logits.at(row, j) * share;
            logits.at(row, j) = (probability - (j == target ? 1 : 0)) * gradientScale;
        }
    }
}
