package dev.penstock.runtime.events;

import com.fasterxml.jackson.annotation.JsonFormat;
import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.annotation.JsonPropertyOrder;
import com.fasterxml.jackson.annotation.JsonSetter;
import com.fasterxml.jackson.annotation.JsonSubTypes;
import com.fasterxml.jackson.annotation.JsonSubTypes.Type;
import com.fasterxml.jackson.annotation.JsonTypeInfo;
import com.fasterxml.jackson.annotation.Nulls;
import dev.penstock.actors.spi.RankGrid;
import java.util.List;
import java.util.Map;

/**
 * A line of {@code events.jsonl}: one JSON object whose field {@code type} names the record and
 * whose other fields are its components. {@code time} is in milliseconds since 1970. Readers pass
 * over types and fields that they do not know, so that new ones do not need a new version.
 */
@JsonTypeInfo(use = JsonTypeInfo.Id.NAME, property = "type")
@JsonSubTypes({
    @Type(value = RunEvent.Began.class, name = "began"),
    @Type(value = RunEvent.Opened.class, name = "opened"),
    @Type(value = RunEvent.Stepped.class, name = "step"),
    @Type(value = RunEvent.OpTimes.class, name = "ops"),
    @Type(value = RunEvent.Evaluated.class, name = "evaluation"),
    @Type(value = RunEvent.Saved.class, name = "checkpoint"),
    @Type(value = RunEvent.Verified.class, name = "verified"),
    @Type(value = RunEvent.Members.class, name = "members"),
    @Type(value = RunEvent.Leases.class, name = "leases"),
    @Type(value = RunEvent.Links.class, name = "links"),
    @Type(value = RunEvent.Recovered.class, name = "recovery"),
    @Type(value = RunEvent.Noted.class, name = "note"),
    @Type(value = RunEvent.Ended.class, name = "ended")
})
@JsonIgnoreProperties(ignoreUnknown = true)
public sealed interface RunEvent {
    /** Of the lines; raised when old readers would misunderstand new files. */
    int VERSION = 1;

    /** When it was written, milliseconds since 1970. */
    long time();

    /**
     * A process begins with the run, or continues with it: the first line, and one per resumption.
     * Also where it goes on with another plan.
     *
     * @param resumedStep steps that count; later ones of earlier lines are done again
     * @param lastStep the step that the run ends with
     * @param schedule the lowered training program, in the text form of schedules
     * @param plannedBytes device memory of every rank as planned
     * @param revision what the same process follows another plan for; empty in older files, and
     *     where a process begins or continues
     */
    record Began(
            long time,
            int version,
            String name,
            long resumedStep,
            long lastStep,
            long tokensPerStep,
            long parameters,
            String schedule,
            RankGrid grid,
            List<Long> plannedBytes,
            String configuration,
            Map<String, String> environment,
            @JsonSetter(nulls = Nulls.AS_EMPTY) String revision)
            implements RunEvent {}

    /** All ranks are open; entry r of {@code devices} describes the device of rank r. */
    record Opened(long time, List<String> devices, String fingerprint) implements RunEvent {}

    /**
     * A committed step.
     *
     * @param tokens that it trained on; 0 in older files: as many as {@link Began} says
     * @param stepMicros from the start order to the last rank's done
     * @param bubbleMeasured and {@code bubblePredicted}: shares, 0 to 1
     * @param rankMicros per activity one entry per rank
     * @param peakBytes per rank; empty if as before
     */
    record Stepped(
            long time,
            long step,
            double loss,
            double gradientNorm,
            double learningRate,
            long tokens,
            long stepMicros,
            double bubbleMeasured,
            double bubblePredicted,
            Map<String, List<Long>> rankMicros,
            List<Long> peakBytes)
            implements RunEvent {}

    /** When every op of a step ran; written for some steps only. */
    record OpTimes(long time, long step, List<Rank> ranks) implements RunEvent {
        /**
         * Microseconds since the step's start; entry i is op i of the rank's program.
         *
         * @param updateStart and {@code updateEnd}: the optimizer
         * @param collectives entry i is what gathers and sums took of op i or because of it, as in
         *     {@link dev.penstock.actors.spi.RankStep}; empty where that is nothing, and in older
         *     files
         * @param copies entry i is what copies took of op i, or what it waited for them, as in
         *     {@link dev.penstock.actors.spi.RankStep}; empty where that is nothing, and in older
         *     files
         */
        public record Rank(
                int[] starts,
                int[] ends,
                int updateStart,
                int updateEnd,
                @JsonSetter(nulls = Nulls.AS_EMPTY) int[] collectives,
                @JsonSetter(nulls = Nulls.AS_EMPTY) int[] copies) {
            /** Of a rank without collectives and copies. */
            public Rank(int[] starts, int[] ends, int updateStart, int updateEnd) {
                this(starts, ends, updateStart, updateEnd, new int[0], new int[0]);
            }
        }
    }

    /** Held-out loss after a step. */
    record Evaluated(long time, long step, double loss) implements RunEvent {}

    /** A published checkpoint. */
    record Saved(long time, long step, long bytes, long micros) implements RunEvent {}

    /**
     * A published checkpoint was read back.
     *
     * @param whole whether everything is as it was written
     * @param problem what is not; empty if all is
     */
    record Verified(long time, long step, boolean whole, long micros, String problem)
            implements RunEvent {}

    /** Who takes part, whenever that changes: ranks that live somewhere, rising, then spares. */
    record Members(long time, List<Member> members) implements RunEvent {
        /**
         * A rank where it lives, or a spare process.
         *
         * @param rank -1 for a spare
         * @param version of the program that the process runs; empty if it does not say
         */
        public record Member(int rank, String node, long pid, String version) {}
    }

    /**
     * How long ago each member was last heard of, in the order of the {@link Members} before;
     * written every few seconds, rarer in long runs.
     */
    record Leases(long time, List<Long> millis) implements RunEvent {}

    /**
     * What the data plane carried; written every few seconds, rarer in long runs, and at the end.
     */
    record Links(long time, long step, List<Link> links) implements RunEvent {
        /**
         * A rank and one of its peers, an array in the file: see {@link
         * dev.penstock.actors.dataplane.LinkTraffic}. A recovery begins anew.
         */
        @JsonFormat(shape = JsonFormat.Shape.ARRAY)
        @JsonPropertyOrder({
            "rank",
            "peer",
            "sentBytes",
            "receivedBytes",
            "backPressured",
            "outOfCredit",
            "resentFrames",
            "corruptFrames"
        })
        public record Link(
                int rank,
                int peer,
                long sentBytes,
                long receivedBytes,
                long backPressured,
                long outOfCredit,
                long resentFrames,
                long corruptFrames) {}
    }

    /** The run came back; steps after {@code fromStep} are done again. */
    record Recovered(
            long time,
            String told,
            int epoch,
            List<Integer> replaced,
            String restart,
            long detectMicros,
            long resumeMicros,
            long stepsLost,
            long fromStep)
            implements RunEvent {}

    /** Something to know, in words. */
    record Noted(long time, Kind kind, String text) implements RunEvent {
        /** What it is about. */
        public enum Kind {
            /** A checkpoint could not be written. */
            SAVE_FAILED,
            /** Something died or broke; {@link Recovered} follows. */
            RECOVERING,
            /** Nothing moved for a while. */
            STALL,
            /** A rank is slower than it should be. */
            STRAGGLER,
            /** A step was skipped, because a number was too large for the loss scale. */
            OVERFLOW,
            /** What another plan has won, or why a better one is not taken. */
            PLAN,
            /** Lines that this log has not: the disk was full, or too slow. */
            LEFT_OUT
        }
    }

    /**
     * The process is done with the run.
     *
     * @param outcome completed, interrupted or failed
     * @param step last committed step
     * @param reason why, if it failed
     */
    record Ended(long time, Outcome outcome, long step, String reason) implements RunEvent {
        /** How. */
        public enum Outcome {
            COMPLETED,
            INTERRUPTED,
            FAILED
        }
    }
}
