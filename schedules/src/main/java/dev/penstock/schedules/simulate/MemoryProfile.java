package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.Schedule;
import java.util.List;

/**
 * Peak activations of a schedule. They follow from the order on each rank alone, so they hold for
 * every timing.
 *
 * @param stages of every stage that works, by rank, then by stage
 * @param ranks entry r is the peak of rank r over all its stages together
 */
public record MemoryProfile(List<StagePeak> stages, List<RankPeak> ranks) {
    public MemoryProfile {
        stages = List.copyOf(stages);
        ranks = List.copyOf(ranks);
    }

    /**
     * The most units that a rank holds at a time.
     *
     * @param peakUnits in units of one live (stage, micro-batch, slice)
     * @param position the op with which the peak is first reached
     */
    public record RankPeak(int rank, int peakUnits, int position) {}

    /** The peaks of a schedule, lowered or not. */
    public static MemoryProfile of(Schedule schedule, PassKind passKind) {
        List<LiveUnits> walks =
                schedule.programs().stream()
                        .map(program -> new LiveUnits(schedule.shape(), passKind, program))
                        .toList();
        return new MemoryProfile(
                walks.stream().flatMap(walk -> walk.stagePeaks().stream()).toList(),
                walks.stream().map(LiveUnits::rankPeak).toList());
    }

    /** The most units that any rank holds at a time. */
    public int peakUnits() {
        return ranks.stream().mapToInt(RankPeak::peakUnits).max().orElse(0);
    }
}
