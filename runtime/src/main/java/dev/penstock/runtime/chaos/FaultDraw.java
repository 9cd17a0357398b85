package dev.penstock.runtime.chaos;

import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.run.FaultEntry;
import dev.penstock.runtime.config.run.FaultEntry.Moment;
import dev.penstock.runtime.config.run.FaultEntry.SavePoint;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.Schedule;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.IntStream;

/** Draws faults from a seed: the same seed, configuration and count give the same faults. */
final class FaultDraw {
    private static final List<Moment> MOMENTS =
            List.of(
                    Moment.BEGIN,
                    Moment.READY,
                    Moment.OPTIMIZER,
                    Moment.UPDATED,
                    Moment.CHECKPOINT,
                    Moment.SAVED);
    private static final List<SavePoint> OF_A_SHARD =
            List.of(SavePoint.SHARD_HALF_WRITTEN, SavePoint.SHARD_WRITTEN, SavePoint.SHARD_FLUSHED);
    private static final int LONGEST_SPAN = 10;
    private static final int MOST_DELAY_MILLIS = 20;
    private static final int MOST_SHARD_BYTES = 100_000;

    private final RunConfig config;
    private final Schedule training;
    private final List<FaultKind> kinds;
    private final Random random;

    /**
     * @param training the lowered program, whose ops are places for faults
     * @param kinds at least one
     */
    FaultDraw(RunConfig config, Schedule training, List<FaultKind> kinds, long seed) {
        this.config = config;
        this.training = training;
        this.kinds =
                kinds.stream()
                        .filter(kind -> kind != FaultKind.FULL_DISK || !savedSteps().isEmpty())
                        .filter(kind -> kind != FaultKind.TORN_SHARD || !savedSteps().isEmpty())
                        .flatMap(kind -> IntStream.range(0, kind.weight()).mapToObj(_ -> kind))
                        .toList();
        this.random = new Random(seed);
    }

    /** Draws that many faults. */
    List<FaultEntry> draw(int count) {
        List<FaultEntry> faults = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            faults.add(draw(pick(kinds)));
        }
        return faults;
    }

    private FaultEntry draw(FaultKind kind) {
        return switch (kind) {
            case KILL_AT_OP -> {
                int rank = rank();
                Op op = pick(training.program(config.grid().programOf(rank, training)).ops());
                String text = OpText.print(op, training.shape());
                yield new FaultEntry.KillRank(rank, step(), Optional.of(text), Moment.BEGIN);
            }
            case KILL_AT_MOMENT -> {
                int rank = rank();
                Moment moment = pick(moments(rank));
                boolean inSave = moment == Moment.CHECKPOINT || moment == Moment.SAVED;
                boolean possible = !inSave || !savedSteps().isEmpty();
                int step = inSave && possible ? pick(savedSteps()) : step();
                yield new FaultEntry.KillRank(
                        rank, step, Optional.empty(), possible ? moment : Moment.READY);
            }
            case SHORT_PAUSE -> pause(config.timeouts().lease().dividedBy(5), lease() / 2);
            case LONG_PAUSE -> pause(config.timeouts().lease().plusMillis(lease() / 2), lease());
            case SLOW_STAGE -> {
                int from = step();
                yield new FaultEntry.SlowStage(
                        random.nextInt(training.shape().stages()),
                        Optional.empty(),
                        1.5 + random.nextInt(6) / 2.0,
                        Optional.empty(),
                        from,
                        last(from));
            }
            case FULL_DISK ->
                    new FaultEntry.FailDisk(
                            new Bytes(random.nextInt(MOST_SHARD_BYTES)), pick(savedSteps()));
            case TORN_SHARD -> new FaultEntry.TearCheckpoint(pick(OF_A_SHARD), pick(savedSteps()));
            case LOST_FRAMES -> {
                int from = step();
                yield new FaultEntry.DropFrames(rate(), seed(), from, last(from));
            }
            case LATE_FRAMES -> {
                int from = step();
                Duration delay = Duration.ofMillis(1 + random.nextInt(MOST_DELAY_MILLIS));
                yield new FaultEntry.DelayFrames(rate(), delay, seed(), from, last(from));
            }
            case DOUBLED_FRAMES -> {
                int from = step();
                yield new FaultEntry.DuplicateFrames(rate(), seed(), from, last(from));
            }
            case CORRUPT_FRAMES -> {
                int from = step();
                yield new FaultEntry.CorruptFrames(rate(), seed(), from, last(from));
            }
        };
    }

    /** Returns the moments that occur in a step of this rank. */
    private List<Moment> moments(int rank) {
        List<Moment> moments = new ArrayList<>(MOMENTS);
        List<Op> ops = training.program(config.grid().programOf(rank, training)).ops();
        if (ops.stream().anyMatch(op -> op instanceof Op.GatherParameters)) {
            moments.add(Moment.GATHERING);
        }
        if (ops.stream().anyMatch(op -> op instanceof Op.ReduceGradients)) {
            moments.add(Moment.REDUCING);
        }
        return moments;
    }

    private FaultEntry pause(Duration least, long moreMillis) {
        Duration length = least.plusMillis(random.nextLong(Math.max(1, moreMillis)));
        return new FaultEntry.PauseRank(rank(), length, step(), Optional.empty(), Moment.BEGIN);
    }

    private Optional<Integer> last(int from) {
        return Optional.of(Math.min(config.run().steps(), from + random.nextInt(LONGEST_SPAN)));
    }

    /** Returns a rate of 1 to 10 %. */
    private double rate() {
        return (1 + random.nextInt(10)) / 100.0;
    }

    private long seed() {
        return random.nextInt(1_000_000);
    }

    private long lease() {
        return config.timeouts().lease().toMillis();
    }

    private int rank() {
        List<Integer> present =
                IntStream.range(0, config.grid().ranks())
                        .filter(
                                rank ->
                                        training.placement()
                                                .wiring()
                                                .map(wiring -> wiring.isPresent(rank))
                                                .orElse(true))
                        .boxed()
                        .toList();
        return pick(present);
    }

    private int step() {
        return 1 + random.nextInt(config.run().steps());
    }

    private List<Integer> savedSteps() {
        int every = config.checkpoint().every();
        int steps = config.run().steps();
        return every == 0
                ? List.of()
                : IntStream.rangeClosed(1, steps)
                        .filter(step -> step % every == 0)
                        .boxed()
                        .toList();
    }

    private <T> T pick(List<T> from) {
        return from.get(random.nextInt(from.size()));
    }
}
