package dev.penstock.schedules.generate.vshaped;

import java.util.ArrayDeque;
import java.util.Arrays;

/**
 * A block, repeated for every micro-batch, and pushed together at both ends, where it has holes
 * ("squeezing" and "reordering", Qi et al. 2024, arXiv 2405.15362, section 2): every op moves to
 * the first free slot that its inputs and the memory allow. An op that does not move keeps its
 * slot, so nothing ever gets later.
 */
final class VShapedSlots {
    private static final int IDLE = -1;

    private final VUnits units;
    private final VShapedBlock block;

    /** By rank and slot: the unit there. */
    private final int[][] at;

    /** By rank and slot: chunks alive after the slot. */
    private final int[][] alive;

    /** By unit: its slot. */
    private final int[] slotOf;

    VShapedSlots(VUnits units, VShapedBlock block) {
        this.units = units;
        this.block = block;
        // at most the weights of two periods are left over behind the last micro-batch
        int slots =
                block.length()
                        + VShapedBlock.PERIOD * (units.microBatches() - 1)
                        + 2 * VShapedBlock.PERIOD;
        this.at = new int[units.ranks()][slots];
        this.alive = new int[units.ranks()][slots];
        this.slotOf = new int[units.ranks() * units.perRank()];
        for (int rank = 0; rank < units.ranks(); rank++) {
            repeat(rank);
            addWeights(rank);
            countAlive(rank);
        }
    }

    private void repeat(int rank) {
        Arrays.fill(at[rank], IDLE);
        for (int p = 0; p <= VPass.INPUT_LOW.index(); p++) {
            VPass pass = VPass.of(p);
            int first = block.slot(pass, rank);
            for (int i = 0; i < units.microBatches(); i++) {
                put(units.index(rank, pass, i), first + i * VShapedBlock.PERIOD);
            }
        }
    }

    private void put(int unit, int slot) {
        int[] row = at[units.rank(unit)];
        if (row[slot] != IDLE) {
            throw new IllegalArgumentException(
                    "%s puts two ops of rank %d into slot %d"
                            .formatted(block, units.rank(unit), slot));
        }
        row[slot] = unit;
        slotOf[unit] = slot;
    }

    private void addWeights(int rank) {
        var waiting = new ArrayDeque<Integer>();
        for (int slot = 0; slot < at[rank].length; slot++) {
            int unit = at[rank][slot];
            if (unit == IDLE && !waiting.isEmpty()) {
                put(waiting.remove(), slot);
            } else if (unit != IDLE && !units.pass(unit).isForward()) {
                waiting.add(units.index(rank, units.pass(unit).weight(), units.microBatch(unit)));
            }
        }
    }

    private void countAlive(int rank) {
        int now = 0;
        for (int slot = 0; slot < at[rank].length; slot++) {
            int unit = at[rank][slot];
            if (unit != IDLE && units.pass(unit).isForward()) {
                now++;
            } else if (unit != IDLE && units.pass(unit).isWeight()) {
                now--;
            }
            alive[rank][slot] = now;
        }
    }

    /** The most chunks that a rank holds at a time. */
    int peak() {
        return Arrays.stream(alive).flatMapToInt(Arrays::stream).max().orElse(0);
    }

    /** Fills holes; afterwards no rank holds more than so many chunks, if none did before. */
    void pushTogether(int limit) {
        for (int slot = 1; slot < at[0].length; slot++) {
            for (int rank = 0; rank < units.ranks(); rank++) {
                if (at[rank][slot] != IDLE) {
                    moveForward(rank, slot, limit);
                }
            }
        }
    }

    private void moveForward(int rank, int slot, int limit) {
        int unit = at[rank][slot];
        VPass pass = units.pass(unit);
        int from = earliest(unit);
        if (pass.isForward()) {
            int kept = slot;
            while (kept > from && alive[rank][kept - 1] < limit) {
                kept--;
            }
            from = kept;
        }
        for (int free = from; free < slot; free++) {
            if (at[rank][free] == IDLE) {
                at[rank][slot] = IDLE;
                at[rank][free] = unit;
                slotOf[unit] = free;
                int more = pass.isForward() ? 1 : pass.isWeight() ? -1 : 0;
                for (int i = free; i < slot; i++) {
                    alive[rank][i] += more;
                }
                return;
            }
        }
    }

    private int earliest(int unit) {
        int giver = units.giver(unit);
        int afterGiver = giver == VUnits.NONE ? 0 : slotOf[giver] + 1;
        return units.microBatch(unit) == 0
                ? afterGiver
                : Math.max(afterGiver, slotOf[unit - 1] + 1);
    }

    /** Entry r is the order of rank r, without the weights. */
    int[][] ordersWithoutWeights() {
        return Arrays.stream(at)
                .map(
                        row ->
                                Arrays.stream(row)
                                        .filter(unit -> unit != IDLE)
                                        .filter(unit -> !units.pass(unit).isWeight())
                                        .toArray())
                .toArray(int[][]::new);
    }
}
