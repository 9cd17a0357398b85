package dev.penstock.schedules;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.simulate.CostModel;
import java.util.Random;

/** Everything has a different cost, and nothing is free. */
public record WildCosts(int seed) implements CostModel {
    @Override
    public long nanos(int rank, int position, Op op) {
        return 1L + new Random(seed + 31L * op.hashCode() + position).nextInt(9);
    }

    @Override
    public long latencyNanos(Channel channel) {
        return 2L * channel.toStage() + channel.fromStage();
    }

    @Override
    public long occupancyNanos(Channel channel, WorkUnit unit) {
        return 1L + new Random(seed + 37L * channel.hashCode() + unit.hashCode()).nextInt(7);
    }

    @Override
    public long backgroundNanos(int rank, Op op) {
        return 1L + new Random(seed + 41L * op.hashCode() + rank).nextInt(30);
    }
}
