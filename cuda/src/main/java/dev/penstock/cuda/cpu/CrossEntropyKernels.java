package dev.penstock.cuda.cpu;

import dev.penstock.cuda.cpu.vector.Addresses;
import dev.penstock.cuda.device.Tensor;

/**
 * One row of a softmax whose columns may lie on several shards; see {@code Kernels.softmaxPart}.
 */
final class CrossEntropyKernels {
    private static final int NUMBERS_BYTES = 3 * Float.BYTES;

    private final SoftmaxKernels softmax;

    CrossEntropyKernels(SoftmaxKernels softmax) {
        this.softmax = softmax;
    }

    /** Where the numbers of row i lie in a part. */
    static long numbers(long part, int i) {
        return part + (long) NUMBERS_BYTES * i;
    }

    /**
     * Writes a row's three numbers.
     *
     * @param target column, -1 if another shard has it
     * @param keep whether the row becomes the exponentials
     */
    void part(long row, int n, int target, long numbers, boolean keep) {
        int whole = softmax.whole(n);
        int left = n - whole;
        long rest = row + 4L * whole;
        float right = target < 0 ? 0 : Addresses.getFloat(row + 4L * target);
        float max = Math.max(softmax.max(row, whole), softmax.maxOfRest(rest, left));
        float sum;
        if (keep) {
            sum = softmax.exp(row, whole, 1, max);
            if (left > 0) {
                sum += softmax.expOfRest(rest, left, 1, max);
            }
        } else {
            sum = softmax.sumOfExp(row, whole, 1, max);
            if (left > 0) {
                sum += softmax.sumOfExpOfRest(rest, left, 1, max);
            }
        }
        Addresses.setFloat(numbers, max);
        Addresses.setFloat(numbers + 4, sum);
        Addresses.setFloat(numbers + 8, right);
    }

    /** The loss of row i from all shards' numbers. */
    float loss(Tensor parts, long partsAt, int i) {
        double max = largest(parts, partsAt, i);
        double right = 0;
        for (int s = 0; s < parts.rows(); s++) {
            right += Addresses.getFloat(numbers(shard(parts, partsAt, s), i) + 8);
        }
        return (float) (StrictMath.log(sum(parts, partsAt, i, max)) + max - right);
    }

    /** Turns the exponentials of row i into the logits' gradient. */
    void gradient(
            Tensor parts,
            long partsAt,
            int i,
            int shard,
            long row,
            int n,
            int target,
            float scale) {
        double max = largest(parts, partsAt, i);
        double own = Addresses.getFloat(numbers(shard(parts, partsAt, shard), i));
        double factor = scale * StrictMath.exp(own - max) / sum(parts, partsAt, i, max);
        softmax.scale(row, n, (float) factor);
        if (target >= 0) {
            long at = row + 4L * target;
            Addresses.setFloat(at, Addresses.getFloat(at) - scale);
        }
    }

    private static double largest(Tensor parts, long partsAt, int i) {
        double max = Double.NEGATIVE_INFINITY;
        for (int s = 0; s < parts.rows(); s++) {
            max = Math.max(max, Addresses.getFloat(numbers(shard(parts, partsAt, s), i)));
        }
        return max;
    }

    private static double sum(Tensor parts, long partsAt, int i, double max) {
        double sum = 0;
        for (int s = 0; s < parts.rows(); s++) {
            long at = numbers(shard(parts, partsAt, s), i);
            sum += Addresses.getFloat(at + 4) * StrictMath.exp(Addresses.getFloat(at) - max);
        }
        return sum;
    }

    private static long shard(Tensor parts, long partsAt, int shard) {
        return partsAt + (long) shard * parts.stride() * Float.BYTES;
    }
}
