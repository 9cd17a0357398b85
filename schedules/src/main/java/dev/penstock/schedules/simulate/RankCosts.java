package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Op;
import java.util.List;

/**
 * Costs of ranks of which each has a speed of its own; transfers take no time.
 *
 * @param ofRanks entry r says what ops take on rank r
 */
public record RankCosts(List<? extends CostModel> ofRanks) implements CostModel {
    public RankCosts {
        ofRanks = List.copyOf(ofRanks);
    }

    @Override
    public long nanos(int rank, int position, Op op) {
        return ofRanks.get(rank).nanos(rank, position, op);
    }

    @Override
    public long backgroundNanos(int rank, Op op) {
        return ofRanks.get(rank).backgroundNanos(rank, op);
    }
}
