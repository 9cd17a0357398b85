package dev.penstock.runtime.launch;

import static java.util.Objects.requireNonNull;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.rank.EpochLinks;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.RankLocation;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.actors.rank.RankRunner;
import dev.penstock.actors.rank.RankStatus;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.PlanRevisions;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StageProgramFactory;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.TensorNorm;
import dev.penstock.runtime.config.run.ConfigLoader;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The ranks of a run on one thread, with their real stages, programs and commands: the test is
 * their supervisor.
 */
final class RanksInOneThread implements AutoCloseable {
    /** One rank. */
    private static final class Rank {
        final List<RankEvent> events = new ArrayList<>();
        final Consumer<RankEvent> told = events::add;
        final List<StageProgram> stages = new ArrayList<>();
        @Nullable RankRunner runner;

        RankRunner runner() {
            return requireNonNull(runner);
        }

        <T extends RankEvent> T last(Class<T> type) {
            RankEvent last = events.getLast();
            if (!type.isInstance(last)) {
                throw new AssertionError("expected %s, got %s".formatted(type, last));
            }
            return type.cast(last);
        }
    }

    /**
     * What a pass gave.
     *
     * @param norms by parameter
     * @param gradients hashes of their bits by parameter
     */
    record Outcome(double loss, Map<String, Double> norms, Map<String, Integer> gradients) {}

    private final RunAssembly first;
    private final RankResources resources;
    private final ThreadlessPlane plane = new ThreadlessPlane();
    private final Map<Integer, Rank> ranks = new TreeMap<>();
    private RunPlan plan;
    private int epoch;
    private long passes;

    RanksInOneThread(Path configuration, List<String> settings) {
        first =
                RunAssembly.of(
                        ConfigLoader.loadWithOrigins(configuration, settings),
                        new RunOptions(
                                "run",
                                configuration.resolveSibling("run"),
                                Optional.empty(),
                                Optional.empty(),
                                Optional.empty(),
                                false));
        resources = first.resources(plane);
        plan = first.plan();
        epoch = 1;
        plan.present().forEach(this::open);
    }

    RunPlan plan() {
        return plan;
    }

    ThreadlessPlane plane() {
        return plane;
    }

    private void open(int number) {
        var rank = new Rank();
        var watched =
                new RankResources(
                        resources.plan(),
                        resources.devices(),
                        watched(resources.programs(), rank),
                        resources.dataPlane(),
                        resources.checkpoints(),
                        resources.faults(),
                        resources.mirrors(),
                        resources.collectives(),
                        resources.library(),
                        resources.transfers(),
                        resources.fenced(),
                        resources.losses(),
                        revision -> {
                            var revised = resources.revisions().of(revision);
                            return new PlanRevisions.Revised(
                                    revised.plan(), watched(revised.programs(), rank));
                        });
        ranks.put(number, rank);
        rank.runner =
                new RankRunner(
                        new RankAssignment(number, new StateSource.Fresh(), links()),
                        watched,
                        new RankStatus(),
                        rank.told,
                        _ -> new NobodyWaits());
        rank.last(RankEvent.Opened.class);
    }

    private static StageProgramFactory watched(StageProgramFactory stages, Rank by) {
        return new DecoratedStages(
                stages,
                (stage, _) -> {
                    by.stages.add(stage);
                    return stage;
                });
    }

    private EpochLinks links() {
        return new EpochLinks(
                epoch,
                IntStream.range(0, plan.ranks())
                        .mapToObj(
                                rank ->
                                        new RankLocation(
                                                rank, 0, MirrorLayout.NOBODY, Optional.empty()))
                        .toList(),
                List.of(),
                "",
                plan.revision());
    }

    /**
     * Goes over to another plan of the same layout in a new epoch.
     *
     * @return what each rank that stays said when it stopped
     */
    List<RankEvent.Prepared> follow(String... settings) {
        RunPlan next =
                first.revisedBy(
                                new PlanRevision(
                                        plan.revision().number() + 1,
                                        List.of(settings),
                                        "",
                                        "a test"))
                        .plan();
        epoch++;
        for (int gone : List.copyOf(ranks.keySet())) {
            if (!next.isPresent(gone)) {
                requireNonNull(ranks.remove(gone)).runner().close();
            }
        }
        List<RankEvent.Prepared> prepared = new ArrayList<>();
        for (Rank rank : ranks.values()) {
            order(rank, new RankCommand.Prepare(epoch));
            prepared.add(rank.last(RankEvent.Prepared.class));
        }
        plan = next;
        for (Rank rank : ranks.values()) {
            order(rank, new RankCommand.Resume(new StateSource.Kept(), links()));
            rank.last(RankEvent.Resumed.class);
        }
        plan.present().stream().filter(rank -> !ranks.containsKey(rank)).forEach(this::open);
        return prepared;
    }

    private static void order(Rank rank, RankCommand command) {
        rank.runner().onOrder(command, rank.told);
    }

    /** Runs a training step as far as its gradients. */
    Outcome train(long step, List<Integer> leftOut) {
        begin(StepKind.TRAIN, step, leftOut);
        run(Integer.MAX_VALUE);
        return outcome();
    }

    double evaluate(long batch) {
        begin(StepKind.EVALUATE, batch, List.of());
        run(Integer.MAX_VALUE);
        return outcome().loss();
    }

    /** Begins a training step and leaves it where it is after this many tries of each rank. */
    void abandon(long step, int tries) {
        begin(StepKind.TRAIN, step, List.of());
        run(tries);
    }

    void commit(long step) {
        for (Rank rank : ranks.values()) {
            order(rank, new RankCommand.Commit(epoch, step, 1));
            rank.last(RankEvent.StepDone.class);
        }
    }

    private void begin(StepKind kind, long step, List<Integer> leftOut) {
        passes++;
        for (Rank rank : ranks.values()) {
            order(
                    rank,
                    new RankCommand.BeginPass(
                            epoch, passes, kind, step, leftOut, OptionalDouble.empty()));
        }
    }

    private void run(int tries) {
        for (int turn = 0; turn < tries; turn++) {
            boolean anybody = false;
            for (Rank rank : ranks.values()) {
                if (!isDone(rank)) {
                    anybody = true;
                    if (rank.runner().runOp() == RankRunner.Next.END) {
                        throw new AssertionError(rank.events.getLast());
                    }
                }
            }
            if (!anybody) {
                return;
            }
            if (turn == 1_000_000) {
                throw new AssertionError("the ranks wait for each other");
            }
        }
    }

    private boolean isDone(Rank rank) {
        return rank.events.getLast() instanceof RankEvent.PassDone done && done.pass() == passes;
    }

    private Outcome outcome() {
        double loss = 0;
        int reports = 0;
        Map<String, Double> norms = new TreeMap<>();
        Map<String, Integer> gradients = new TreeMap<>();
        for (Rank rank : ranks.values()) {
            var result = rank.last(RankEvent.PassDone.class).result();
            loss += result.loss().orElse(0);
            reports += result.loss().isPresent() ? 1 : 0;
            for (TensorNorm norm : result.norms()) {
                if (norms.put(norm.parameter(), norm.squaredNorm()) != null) {
                    throw new AssertionError(norm.parameter() + " is counted twice");
                }
            }
            for (StageProgram stage : rank.stages) {
                for (NamedTensor tensor :
                        result.norms().isEmpty() ? List.<NamedTensor>of() : stage.gradients()) {
                    gradients.put(
                            tensor.name(),
                            Arrays.hashCode(
                                    tensor.tensor().contents().toArray(ValueLayout.JAVA_INT)));
                }
            }
        }
        return new Outcome(loss / reports, norms, gradients);
    }

    @Override
    public void close() {
        ranks.values().forEach(rank -> rank.runner().close());
        first.close();
    }

    /** Ranks are tried again and again. */
    private static final class NobodyWaits implements FrameListener {
        @Override
        public void onFrame(FrameKey key) {}

        @Override
        public void onCredit(ChannelKey channel) {}

        @Override
        public void onFailure(DataPlaneException failure) {
            throw failure;
        }
    }
}
