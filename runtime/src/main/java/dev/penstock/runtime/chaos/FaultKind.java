package dev.penstock.runtime.chaos;

import dev.penstock.runtime.config.run.PipelineSection.Processes;
import dev.penstock.runtime.config.run.RunConfig;
import java.util.Arrays;
import java.util.List;

/** The kinds of faults from which a random schedule is drawn. */
enum FaultKind {
    KILL_AT_OP(3),
    KILL_AT_MOMENT(3),
    SHORT_PAUSE(2),
    LONG_PAUSE(1),
    SLOW_STAGE(2),
    FULL_DISK(1),
    TORN_SHARD(1),
    LOST_FRAMES(1),
    LATE_FRAMES(1),
    DOUBLED_FRAMES(1),
    CORRUPT_FRAMES(1);

    private final int weight;

    FaultKind(int weight) {
        this.weight = weight;
    }

    /** Returns how often it is drawn relative to the others. */
    int weight() {
        return weight;
    }

    /**
     * Returns whether it ends or stops a whole process, which must belong to one rank alone, and be
     * replaced.
     */
    private boolean needsRecovery() {
        return switch (this) {
            case KILL_AT_OP, KILL_AT_MOMENT, LONG_PAUSE, TORN_SHARD -> true;
            case SHORT_PAUSE,
                    SLOW_STAGE,
                    FULL_DISK,
                    LOST_FRAMES,
                    LATE_FRAMES,
                    DOUBLED_FRAMES,
                    CORRUPT_FRAMES ->
                    false;
        };
    }

    /** Returns the faults that a run of this configuration is meant to survive. */
    static List<FaultKind> of(RunConfig config, boolean recovers) {
        boolean ownProcesses = config.pipeline().processes() == Processes.PER_STAGE;
        return Arrays.stream(values())
                .filter(kind -> !kind.needsRecovery() || (ownProcesses && recovers))
                .toList();
    }
}
