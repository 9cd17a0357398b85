package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Channel;
import java.math.BigDecimal;

/** One fact of a profile: what something takes on average, in nanoseconds. */
public sealed interface ProfileLine {
    /** The line in a profile's text. */
    String text();

    private static void requireTime(long nanos) {
        if (nanos < 0) {
            throw new IllegalArgumentException("expected nanoseconds of 0 or more, got " + nanos);
        }
    }

    /**
     * A computation of a stage's slice, without what it gathers by itself. Text: {@code forward 0s1
     * 1200}.
     */
    record Computation(ComputeKind kind, int stage, int slice, long nanos) implements ProfileLine {
        public Computation {
            requireTime(nanos);
        }

        @Override
        public String text() {
            return "%s %ds%d %d".formatted(kind.text(), stage, slice, nanos);
        }
    }

    /**
     * What an overlapped pair takes of the sum of its parts, at most 1 where overlapping helps.
     * Text: {@code overlapped 0.8}.
     */
    record OverlapFactor(double factor) implements ProfileLine {
        public OverlapFactor {
            if (!(factor >= 0 && factor <= 1e9)) {
                throw new IllegalArgumentException("expected a factor of 0 or more, got " + factor);
            }
        }

        @Override
        public String text() {
            return "overlapped " + BigDecimal.valueOf(factor).toPlainString();
        }
    }

    /**
     * The run's micro-batches had sequences of several lengths, so that its times are means over
     * these and belong to none of them. Text: {@code lengths mixed}.
     */
    record MixedLengths() implements ProfileLine {
        static final String TEXT = "lengths mixed";

        @Override
        public String text() {
            return TEXT;
        }
    }

    /** How long a tensor is under way beside its link. Text: {@code latency 0 1 20}. */
    record Latency(Channel channel, long nanos) implements ProfileLine {
        public Latency {
            requireTime(nanos);
        }

        @Override
        public String text() {
            return "latency %d %d %d".formatted(channel.fromStage(), channel.toStage(), nanos);
        }
    }

    /** How long a tensor keeps its link busy. Text: {@code link 1 0 150}. */
    record Link(Channel channel, long nanos) implements ProfileLine {
        public Link {
            requireTime(nanos);
        }

        @Override
        public String text() {
            return "link %d %d %d".formatted(channel.fromStage(), channel.toStage(), nanos);
        }
    }

    /**
     * Gathers that a computation does by itself, on top of its own time. Text: {@code gathering
     * forward 0s1 300}.
     */
    record Gathering(ComputeKind kind, int stage, int slice, long nanos) implements ProfileLine {
        public Gathering {
            requireTime(nanos);
        }

        @Override
        public String text() {
            return "gathering %s %ds%d %d".formatted(kind.text(), stage, slice, nanos);
        }
    }

    /**
     * What a gather of a stage's parameters keeps its rank, waits for other replicas included.
     * Text: {@code gather-work 0 400}.
     */
    record GatherWork(int stage, long nanos) implements ProfileLine {
        public GatherWork {
            requireTime(nanos);
        }

        @Override
        public String text() {
            return "gather-work %d %d".formatted(stage, nanos);
        }
    }

    /**
     * What a sum of a stage's gradients over replicas keeps its rank, waits for them included.
     * Text: {@code reduce-work 0 900}.
     */
    record ReduceWork(int stage, long nanos) implements ProfileLine {
        public ReduceWork {
            requireTime(nanos);
        }

        @Override
        public String text() {
            return "reduce-work %d %d".formatted(stage, nanos);
        }
    }

    /**
     * A gather of a stage's parameters beside the computations, while its rank goes on. Text:
     * {@code gather 0 400}.
     */
    record Gather(int stage, long nanos) implements ProfileLine {
        public Gather {
            requireTime(nanos);
        }

        @Override
        public String text() {
            return "gather %d %d".formatted(stage, nanos);
        }
    }

    /**
     * A copy of a unit's activations to the host beside the computations. Text: {@code offload 0
     * 300}.
     */
    record Offload(int stage, long nanos) implements ProfileLine {
        public Offload {
            requireTime(nanos);
        }

        @Override
        public String text() {
            return "offload %d %d".formatted(stage, nanos);
        }
    }

    /** A copy of a unit's activations back to the device. Text: {@code reload 0 300}. */
    record Reload(int stage, long nanos) implements ProfileLine {
        public Reload {
            requireTime(nanos);
        }

        @Override
        public String text() {
            return "reload %d %d".formatted(stage, nanos);
        }
    }

    /**
     * What follows on the last op: the commit and the slowest rank's update. Text: {@code update
     * 700}.
     */
    record Update(long nanos) implements ProfileLine {
        public Update {
            requireTime(nanos);
        }

        @Override
        public String text() {
            return "update " + nanos;
        }
    }

    /** A reduction of a stage's gradients beside the computations. Text: {@code reduce 0 900}. */
    record Reduce(int stage, long nanos) implements ProfileLine {
        public Reduce {
            requireTime(nanos);
        }

        @Override
        public String text() {
            return "reduce %d %d".formatted(stage, nanos);
        }
    }
}
