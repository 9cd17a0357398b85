package dev.penstock.actors.fault;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.OptionalInt;

/**
 * Something that is made to go wrong. The first five are events: each happens once in a run, also
 * when its step is done again after a recovery. The others are conditions, which hold whenever a
 * step of their span is worked on.
 */
public sealed interface Fault {

    /** In words, as tables and reports show it. */
    String describe();

    /** What happens once, at a place of a rank's step. */
    sealed interface Event extends Fault {
        long step();
    }

    /** What holds during steps. */
    sealed interface Condition extends Fault {}

    /** Where in a step something happens. */
    sealed interface Place {
        /** Before this op of the rank's lowered program begins. */
        record BeforeOp(Op op) implements Place {
            @Override
            public String toString() {
                return "op " + text(op);
            }
        }

        /** At a moment that is no op. */
        record At(StepMoment moment) implements Place {
            @Override
            public String toString() {
                return moment.name().toLowerCase(Locale.ROOT);
            }
        }

        /** Before the first op of the step. */
        record Begin() implements Place {
            @Override
            public String toString() {
                return "its first op";
            }
        }
    }

    /** Ends the process that holds the rank, as kill -9 does. */
    record KillRank(int rank, long step, Place place) implements Event {
        @Override
        public String describe() {
            return "kill rank %d at %s of step %d".formatted(rank, place, step);
        }
    }

    /** Makes the process that holds the rank stand still, as SIGSTOP or a long collection does. */
    record PauseRank(int rank, Duration length, long step, Place place) implements Event {
        @Override
        public String describe() {
            return "pause rank %d for %s at %s of step %d"
                    .formatted(rank, seconds(length), place, step);
        }
    }

    /**
     * The disk is full when a shard of this step's checkpoint has this many bytes on it.
     *
     * @param afterBytes at least 0, of one shard's file
     */
    record FailDisk(long step, long afterBytes) implements Event {
        @Override
        public String describe() {
            return "disk full after %d bytes of the checkpoint of step %d"
                    .formatted(afterBytes, step);
        }
    }

    /**
     * The writing process ends at a point of a checkpoint's way to the disk.
     *
     * @param point which of the steps that lead to a published set
     */
    record TearCheckpoint(long step, SavePoint point) implements Event {
        @Override
        public String describe() {
            return "kill at %s of the checkpoint of step %d"
                    .formatted(point.name().toLowerCase(Locale.ROOT).replace('_', '-'), step);
        }
    }

    /**
     * One element of a stage's input becomes NaN before its forward; on the first stage, which has
     * none, one of its output after it. Of one replica, whose first shard and context part it is.
     */
    record InjectNan(int stage, int replica, int microBatch, long step) implements Event {
        @Override
        public String describe() {
            return "NaN into the activation of stage %d, replica %d, micro-batch %d of step %d"
                    .formatted(stage, replica, microBatch, step);
        }
    }

    /**
     * Every computation of a stage takes longer.
     *
     * @param replica the only one whose stage it is; empty: that of all
     * @param factor at least 1
     * @param atLeast what one takes at least, however short it is without
     */
    record SlowStage(
            int stage, OptionalInt replica, double factor, Duration atLeast, StepSpan steps)
            implements Condition {
        @Override
        public String describe() {
            String of = replica.isEmpty() ? "" : ", replica " + replica.getAsInt();
            List<String> how = new ArrayList<>();
            if (factor > 1) {
                how.add("x%s slower".formatted(plain(factor)));
            }
            if (!atLeast.isZero()) {
                how.add("%s s a computation or more".formatted(plain(atLeast.toNanos() / 1e9)));
            }
            return "stage %d%s %s in %s".formatted(stage, of, String.join(", ", how), steps);
        }

        /** Whether this replica's stage is slow. */
        boolean isOf(int of) {
            return replica.orElse(of) == of;
        }
    }

    /**
     * Frames of the data plane are harmed on their way: each with this probability, drawn from the
     * seed, the channel and the frame's number alone.
     *
     * @param rate 0 to 1
     * @param delay how late a delayed frame is; zero for the other harms
     */
    record HarmFrames(FrameHarm harm, double rate, long seed, Duration delay, StepSpan steps)
            implements Condition {
        @Override
        public String describe() {
            String how = harm == FrameHarm.DELAY ? " by " + seconds(delay) : "";
            return "%s %s %% of the frames%s in %s (seed %d)"
                    .formatted(
                            harm.name().toLowerCase(Locale.ROOT),
                            plain(rate * 100),
                            how,
                            steps,
                            seed);
        }
    }

    private static String text(Op op) {
        boolean withSlice = op instanceof Op.UnitOp unitOp && unitOp.unit().slice() > 0;
        return OpText.print(op, withSlice);
    }

    private static String seconds(Duration length) {
        return plain(length.toMillis() / 1e3) + " s";
    }

    private static String plain(double number) {
        return Double.toString(Math.round(number * 1e6) / 1e6).replaceFirst("\\.0$", "");
    }
}
