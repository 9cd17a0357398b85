package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.OptionalInt;

/**
 * Costs of a pipeline in which a rank, or one op of it, takes longer than it should.
 *
 * @param costs what everything would cost
 * @param position the op that is slow; empty if all ops of the rank are
 * @param factor how many times as long it takes, 0 or more; 2 is twice as long
 */
public record Straggler(CostModel costs, int rank, OptionalInt position, double factor)
        implements CostModel {
    public Straggler {
        if (!(factor >= 0 && factor <= 1e6) || rank < 0 || position.orElse(0) < 0) {
            throw new IllegalArgumentException(
                    "expected a rank and an op from 0 on, slower by a factor of 0 to 1000000, got rank %d, op %s, factor %s"
                            .formatted(rank, position, factor));
        }
    }

    /** All ops of a rank are slow. */
    public static Straggler ofRank(CostModel costs, int rank, double factor) {
        return new Straggler(costs, rank, OptionalInt.empty(), factor);
    }

    /** One op of a rank is slow. */
    public static Straggler ofOp(CostModel costs, int rank, int position, double factor) {
        return new Straggler(costs, rank, OptionalInt.of(position), factor);
    }

    @Override
    public long nanos(int ofRank, int atPosition, Op op) {
        long nanos = costs.nanos(ofRank, atPosition, op);
        boolean slow = ofRank == rank && position.orElse(atPosition) == atPosition;
        return slow ? Math.round(nanos * factor) : nanos;
    }

    @Override
    public long latencyNanos(Channel channel) {
        return costs.latencyNanos(channel);
    }

    @Override
    public long occupancyNanos(Channel channel, WorkUnit unit) {
        return costs.occupancyNanos(channel, unit);
    }

    @Override
    public long backgroundNanos(int ofRank, Op op) {
        return costs.backgroundNanos(ofRank, op);
    }
}
