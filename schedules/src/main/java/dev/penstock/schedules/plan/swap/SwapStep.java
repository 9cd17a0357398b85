package dev.penstock.schedules.plan.swap;

import java.util.List;

/**
 * The time of a step in which every segment is visited twice, forward and back, each time with all
 * micro-batches. With C of them, segment i's load l_i and gradients of the same size:
 *
 * <pre>
 *   forward    for i rising:   load i+1   beside   C f_i
 *   backward   for i falling:  load i-1, write the gradients of i   beside   C b_i
 *
 *   step = l_1 + sum max(C f_i, l_(i+1)) + sum max(C b_i, l_(i-1) + l_i)
 * </pre>
 *
 * @param microBatches C
 */
public record SwapStep(int microBatches) {
    /** More micro-batches than any step has. */
    private static final int MOST = 1 << 30;

    /** The time of a step of these segments. */
    public double time(List<SwapPart> segments) {
        double time = segments.getFirst().load();
        for (int i = 0; i < segments.size(); i++) {
            SwapPart segment = segments.get(i);
            time += i + 1 < segments.size() ? forward(segment, segments.get(i + 1)) : last(segment);
            time += i > 0 ? backward(segments.get(i - 1), segment) : first(segment);
        }
        return time;
    }

    double first(SwapPart segment) {
        return Math.max(microBatches * segment.backward(), segment.load());
    }

    double last(SwapPart segment) {
        return microBatches * segment.forward();
    }

    double forward(SwapPart segment, SwapPart next) {
        return Math.max(microBatches * segment.forward(), next.load());
    }

    double backward(SwapPart previous, SwapPart segment) {
        return Math.max(microBatches * segment.backward(), previous.load() + segment.load());
    }

    /**
     * The micro-batches from which on the computations alone are a share of a step with its loads
     * and its update.
     *
     * @param update time in which the state is read, updated and written; the same in every step
     * @param share above 0, below 1
     */
    public static int reaching(List<SwapPart> segments, double update, double share) {
        double computing = segments.stream().mapToDouble(s -> s.forward() + s.backward()).sum();
        int low = 0;
        int high = 1;
        while (high < MOST && !reaches(segments, update, share, computing, high)) {
            low = high;
            high *= 2;
        }
        while (high - low > 1) {
            int middle = (low + high) / 2;
            if (reaches(segments, update, share, computing, middle)) {
                high = middle;
            } else {
                low = middle;
            }
        }
        return high;
    }

    private static boolean reaches(
            List<SwapPart> segments,
            double update,
            double share,
            double computing,
            int microBatches) {
        double step = new SwapStep(microBatches).time(segments) + update;
        return microBatches * computing >= share * step;
    }

    /**
     * The micro-batches from which on no segment waits for another in the forward: max ceil(l_(i+1)
     * / f_i). Segments that compute nothing, as an embedding alone, are left out: nothing is enough
     * for them.
     */
    public static int enough(List<SwapPart> segments) {
        double most = 1;
        for (int i = 0; i + 1 < segments.size(); i++) {
            if (segments.get(i).forward() > 0) {
                most = Math.max(most, segments.get(i + 1).load() / segments.get(i).forward());
            }
        }
        return (int) Math.ceil(most);
    }
}
