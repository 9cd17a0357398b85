package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.reading.Setting;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * One entry of the list {@code fault}: something that the run makes go wrong on purpose. The first
 * key of each kind names it.
 */
public sealed interface FaultEntry {
    /** Every kind, in the order of the reference. */
    List<Class<? extends Record>> KINDS =
            List.of(
                    KillRank.class,
                    PauseRank.class,
                    DropFrames.class,
                    DelayFrames.class,
                    DuplicateFrames.class,
                    CorruptFrames.class,
                    FailDisk.class,
                    TearCheckpoint.class,
                    InjectNan.class,
                    SlowStage.class);

    /** These entries as the value of the key {@code fault}. */
    static String written(List<FaultEntry> entries) {
        return FaultEntries.value(entries);
    }

    /** This entry as it would be written in a file. */
    default String text() {
        return FaultEntries.written(this);
    }

    /** Where in a step something happens, if not at an op. */
    enum Moment {
        BEGIN,
        GATHERING,
        REDUCING,
        READY,
        OPTIMIZER,
        UPDATED,
        CHECKPOINT,
        SAVED
    }

    /** On a checkpoint's way to the disk. */
    enum SavePoint {
        SHARD_HALF_WRITTEN,
        SHARD_WRITTEN,
        SHARD_FLUSHED,
        MANIFEST_WRITTEN,
        OLD_SET_ASIDE,
        RENAMED
    }

    /** The process of a rank ends as by kill -9. */
    record KillRank(
            @Setting(range = "[0, )", doc = "rank whose process ends as by kill -9") int killRank,
            @Setting(range = "[1, )", doc = "step in which it happens") int step,
            @Setting(is = "none", word = "none", doc = "before this op of the rank, such as 1F3")
                    Optional<String> op,
            @Setting(is = "begin", doc = "or at this moment of the step") Moment at)
            implements FaultEntry {}

    /** The process of a rank stands still. */
    record PauseRank(
            @Setting(range = "[0, )", doc = "rank whose process stands still as by SIGSTOP")
                    int pauseRank,
            @Setting(name = "for", range = "[1 ms, 10 minutes]", doc = "how long") Duration length,
            @Setting(range = "[1, )", doc = "step in which it happens") int step,
            @Setting(is = "none", word = "none", doc = "before this op of the rank, such as 1F3")
                    Optional<String> op,
            @Setting(is = "begin", doc = "or at this moment of the step") Moment at)
            implements FaultEntry {}

    /** Frames are lost. */
    record DropFrames(
            @Setting(range = "(0, 1]", doc = "share of the frames that are lost") double dropFrames,
            @Setting(is = "1", doc = "decides which") long seed,
            @Setting(is = "1", range = "[1, )", doc = "first step") int fromStep,
            @Setting(is = "end", word = "end", range = "[1, )", doc = "last step")
                    Optional<Integer> toStep)
            implements FaultEntry {}

    /** Frames are late. */
    record DelayFrames(
            @Setting(range = "(0, 1]", doc = "share of the frames that are late")
                    double delayFrames,
            @Setting(name = "for", range = "[1 ms, 1 minute]", doc = "how late") Duration delay,
            @Setting(is = "1", doc = "decides which") long seed,
            @Setting(is = "1", range = "[1, )", doc = "first step") int fromStep,
            @Setting(is = "end", word = "end", range = "[1, )", doc = "last step")
                    Optional<Integer> toStep)
            implements FaultEntry {}

    /** Frames arrive twice. */
    record DuplicateFrames(
            @Setting(range = "(0, 1]", doc = "share of the frames that arrive twice")
                    double duplicateFrames,
            @Setting(is = "1", doc = "decides which") long seed,
            @Setting(is = "1", range = "[1, )", doc = "first step") int fromStep,
            @Setting(is = "end", word = "end", range = "[1, )", doc = "last step")
                    Optional<Integer> toStep)
            implements FaultEntry {}

    /** Frames arrive with a bit turned. */
    record CorruptFrames(
            @Setting(range = "(0, 1]", doc = "share of the frames that have a bit turned")
                    double corruptFrames,
            @Setting(is = "1", doc = "decides which") long seed,
            @Setting(is = "1", range = "[1, )", doc = "first step") int fromStep,
            @Setting(is = "end", word = "end", range = "[1, )", doc = "last step")
                    Optional<Integer> toStep)
            implements FaultEntry {}

    /** The disk is full while a checkpoint is written. */
    record FailDisk(
            @Setting(doc = "bytes of a stage's file after which the disk is full") Bytes failDisk,
            @Setting(range = "[1, )", doc = "step whose checkpoint it is") int step)
            implements FaultEntry {}

    /** The process that writes a checkpoint ends as by kill -9. */
    record TearCheckpoint(
            @Setting(doc = "point at which the writing process ends as by kill -9")
                    SavePoint tearCheckpoint,
            @Setting(range = "[1, )", doc = "step whose checkpoint it is") int step)
            implements FaultEntry {}

    /** An activation becomes NaN. */
    record InjectNan(
            @Setting(range = "[0, )", doc = "stage whose activation becomes NaN") int injectNan,
            @Setting(is = "0", range = "[0, )", doc = "of this replica") int replica,
            @Setting(is = "0", range = "[0, )", doc = "of this micro-batch of the replica")
                    int microBatch,
            @Setting(range = "[1, )", doc = "step in which it happens") int step)
            implements FaultEntry {}

    /** A stage computes slower. */
    record SlowStage(
            @Setting(range = "[0, )", doc = "stage whose computations take longer") int slowStage,
            @Setting(is = "all", word = "all", range = "[0, )", doc = "of this replica, or of all")
                    Optional<Integer> replica,
            @Setting(is = "1", range = "[1, )", doc = "how many times as long") double factor,
            @Setting(
                            is = "none",
                            word = "none",
                            range = "[1 ms, 10 minutes]",
                            doc = "how long each computation takes at least")
                    Optional<Duration> atLeast,
            @Setting(is = "1", range = "[1, )", doc = "first step") int fromStep,
            @Setting(is = "end", word = "end", range = "[1, )", doc = "last step")
                    Optional<Integer> toStep)
            implements FaultEntry {}
}
