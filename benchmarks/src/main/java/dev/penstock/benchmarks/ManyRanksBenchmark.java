package dev.penstock.benchmarks;

import akka.actor.ActorSystem;
import akka.serialization.Serialization;
import akka.serialization.SerializationExtension;
import com.typesafe.config.ConfigFactory;
import dev.penstock.actors.cluster.SeedBooks;
import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalFile;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.node.HostedRank;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.LocationDigests;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.RankLocations;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;
import dev.penstock.actors.spi.StepResult;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.actors.spi.TensorNorm;
import dev.penstock.actors.spi.Timeouts;
import dev.penstock.actors.supervisor.Effect;
import dev.penstock.actors.supervisor.RunBeginning;
import dev.penstock.actors.supervisor.RunCoordinator;
import dev.penstock.schedules.generate.OneForwardOneBackward;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.Lowering;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/**
 * What a supervisor has to do for a run of many ranks: the real coordinator, journal and
 * serializer; the ranks are imagined, each on a host of its own, and answer at once. Five stages,
 * the rest replicas. What listeners do with a step, such as metrics, is not in it.
 *
 * <p>Arguments: numbers of ranks, multiples of five; without any, 10, 100 and 1000.
 */
public final class ManyRanksBenchmark {
    private static final int STAGES = 5;
    private static final int MICRO_BATCHES = 16;
    private static final int TENSORS = 12;
    private static final int STEPS = 50;
    private static final int WARM = 20;
    private static final long MICRO = 1_000;

    /** A rank's node, and the epoch in which it was born there. */
    private record Home(NodeInfo node, int birth) {}

    private final int ranks;
    private final RunPlan plan;
    private final Serialization wire;
    private final JournalFile journal;
    private final RunListener listener =
            new RunListener() {
                @Override
                public void onRecovery(RecoveryReport report) {
                    back = true;
                }
            };
    private final Deque<Supplier<List<Effect>>> answers = new ArrayDeque<>();

    /** Where each rank lives. */
    private final Map<Integer, Home> homes = new HashMap<>();

    /** What each rank has put together from what it was told. */
    private final Map<Integer, RankLocations> locations = new HashMap<>();

    private RunCoordinator coordinator;
    private long now = 1;
    private long spent;
    private long writing;
    private long bytes;
    private long longest;
    private long answered;
    private boolean weighs;
    private boolean back;
    private long committed;

    private ManyRanksBenchmark(int ranks, Serialization wire, JournalFile journal) {
        if (ranks < STAGES || ranks % STAGES != 0) {
            throw new IllegalArgumentException(
                    "expected a multiple of %d ranks, got %d".formatted(STAGES, ranks));
        }
        this.ranks = ranks;
        this.wire = wire;
        this.journal = journal;
        this.plan = plan(ranks);
        this.coordinator =
                RunCoordinator.of(RunBeginning.FIRST, plan, RecoveryPolicy.DEFAULT, 0, now);
    }

    private static RunPlan plan(int ranks) {
        PipelineShape shape = PipelineShape.of(STAGES, MICRO_BATCHES);
        Schedule order = OneForwardOneBackward.schedule(shape);
        return new RunPlan(
                "many",
                "hash",
                Lowering.lower(order),
                Lowering.lowerForwardOnly(order),
                new RankGrid(STAGES, 1, 1, ranks / STAGES),
                Map.of(),
                new RunSteps(0, 2 * (WARM + STEPS), 1, 0, 0, 0),
                Timeouts.DEFAULT,
                false,
                true,
                CollectiveForm.NEVER);
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream out = System.out;
        List<Integer> sizes =
                arguments.length == 0
                        ? List.of(10, 100, 1000)
                        : Arrays.stream(arguments).map(Integer::parseInt).toList();
        out.printf(
                "%6s %18s %16s %10s %18s %13s %12s %12s %18s %14s %12s %15s%n",
                "ranks",
                "placing ms",
                "a step ms",
                "a step KiB",
                "recovery ms",
                "recovery KiB",
                "largest KiB",
                "answers KiB",
                "take-over ms",
                "take-over KiB",
                "answers KiB",
                "journal B/step");
        ActorSystem system =
                ActorSystem.create(
                        "many",
                        ConfigFactory.parseString("akka.loglevel = ERROR")
                                .withFallback(ConfigFactory.load()));
        try {
            for (int size : sizes) {
                Path file = Files.createTempFile("penstock-journal-", ".txt");
                try (JournalFile journal = JournalFile.open(file)) {
                    new ManyRanksBenchmark(size, SerializationExtension.get(system), journal)
                            .row(out, file);
                } finally {
                    Files.delete(file);
                }
            }
        } finally {
            system.terminate();
        }
        out.printf(
                "%nms: of the supervisor's thread, behind it those of the journal's writes to disk;"
                        + " a step is the mean of %d; KiB: orders to all ranks as they are serialized;"
                        + " a recovery: one host dies, another takes its rank; a take-over: another"
                        + " host dies, and the supervisor with it; answers: of the ranks to these"
                        + " orders%n",
                STEPS);
        books(out, sizes);
    }

    private static void books(PrintStream out, List<Integer> sizes) {
        out.printf(
                "%n%6s %11s %11s %13s %13s %14s %12s%n",
                "nodes",
                "joining ms",
                "placing ms",
                "one more ms",
                "recovery ms",
                "take-over ms",
                "asked often");
        for (int size : sizes) {
            SeedBooks.Figures took = SeedBooks.measure(plan(size));
            out.printf(
                    "%6d %11.1f %11.1f %13.1f %13.1f %14.1f %12d%n",
                    size,
                    took.joining(),
                    took.placing(),
                    took.spare(),
                    took.recovery(),
                    took.takeOver(),
                    took.asked());
        }
        out.printf(
                "%nms: of the thread that keeps a seed's books, with one rank on each node;"
                        + " joining: of all nodes but the last together; asked: how often an"
                        + " application says in all what the ranks hold%n");
    }

    private void row(PrintStream out, Path file) throws IOException {
        for (int rank = 0; rank < ranks; rank++) {
            NodeInfo node = node(rank, rank);
            answers.add(() -> coordinator.onNode(node, now));
        }
        // placing goes on into the first step, whose commit ends it
        runTo(1);
        String placing = took(1);
        runTo(WARM);
        took(1);
        long journalled = Files.size(file);
        runTo(WARM + STEPS);
        String step = took(STEPS);
        long perStep = (Files.size(file) - journalled) / STEPS;
        weighs = true;
        bytes = 0;
        runTo(WARM + STEPS + 1);
        double stepKib = bytes / 1024.0;
        answers.clear();
        String recovery =
                comesBack(
                        List.of(
                                () ->
                                        coordinator.onNodeDied(
                                                node(ranks - 1, ranks - 1).process(),
                                                false,
                                                "killed",
                                                now),
                                () -> coordinator.onNode(node(ranks, ranks - 1), now)));
        recovery = "%s %12.2f".formatted(recovery, longest / 1024.0);
        double answersKib = answered / 1024.0;
        answers.clear();
        coordinator = takeUp(file);
        String takeOver = comesBack(introductions(ranks / 2));
        out.printf(
                "%6d %18s %16s %10.1f %s %12.1f %s %12.1f %15d%n",
                ranks,
                placing,
                step,
                stepKib,
                recovery,
                answersKib,
                takeOver,
                answered / 1024.0,
                perStep);
    }

    /** What a recovery costs that begins like this. */
    private String comesBack(List<Supplier<List<Effect>>> beginning) {
        bytes = 0;
        longest = 0;
        answered = 0;
        back = false;
        took(1);
        answers.addAll(beginning);
        while (!back) {
            next();
        }
        return "%18s %13.1f".formatted(took(1), bytes / 1024.0);
    }

    private RunCoordinator takeUp(Path file) {
        JournalledRun run = JournalledRun.of(JournalFile.read(file)).orElseThrow();
        return RunCoordinator.of(
                new RunBeginning.TakenUp(run, true), plan, RecoveryPolicy.DEFAULT, 0, now);
    }

    /** All nodes say what they host, but that of one rank, in whose place there is another. */
    private List<Supplier<List<Effect>>> introductions(int lost) {
        Map<NodeInfo, List<HostedRank>> hosted = new LinkedHashMap<>();
        homes.forEach(
                (rank, home) ->
                        hosted.computeIfAbsent(home.node(), _ -> new ArrayList<>())
                                .add(new HostedRank(rank, home.birth())));
        hosted.remove(node(lost, lost));
        hosted.put(node(ranks + 1, lost), List.of());
        int epoch = coordinator.epoch();
        List<Supplier<List<Effect>>> words = new ArrayList<>();
        hosted.forEach((node, some) -> words.add(() -> coordinator.onNode(node, epoch, some, now)));
        words.add(() -> coordinator.onNowhere(lost, now));
        return words;
    }

    /** What was spent since this was asked last, on one of so many: in all, and writing of it. */
    private String took(int of) {
        String text = "%.2f %7.2f".formatted((spent + writing) / 1e6 / of, writing / 1e6 / of);
        spent = 0;
        writing = 0;
        return text;
    }

    private static NodeInfo node(int number, int rank) {
        var address =
                new PeerAddress(
                        "host-%04d.cluster.example".formatted(number),
                        "/dev/shm/penstock-many-%04d/driver".formatted(number),
                        "10.1.%d.%d:40123".formatted(number / 250, number % 250 + 1));
        return new NodeInfo(
                "worker-" + number,
                number,
                number,
                "1",
                Optional.of(rank),
                false,
                Optional.of(address));
    }

    // ---- the imagined ranks ---------------------------------------------------------------------

    private void runTo(long step) {
        while (committed < step) {
            next();
        }
    }

    private void next() {
        now += MICRO;
        long start = System.nanoTime();
        List<Effect> effects = answers.remove().get();
        spent += System.nanoTime() - start;
        effects.forEach(this::perform);
    }

    private void perform(Effect effect) {
        switch (effect) {
            case Effect.HostRank(NodeInfo node, var birth) -> {
                weigh(birth);
                int rank = birth.rank();
                homes.put(rank, new Home(node, birth.epoch()));
                locations.put(rank, RankLocations.NONE.with(birth.links().changed()));
                answers.add(() -> coordinator.onHosted(rank, birth.epoch(), now));
                hear(new RankEvent.Opened(rank, birth.epoch(), "cpu", "kernels"));
            }
            case Effect.TellRank(int rank, RankCommand order) -> {
                weigh(order);
                answer(rank, order);
            }
            case Effect.AskRoom(var nodes) ->
                    answers.add(() -> coordinator.onRoom(nodes, true, now));
            case Effect.Journal(var entries) -> {
                long start = System.nanoTime();
                journal.append(entries);
                writing += System.nanoTime() - start;
            }
            case Effect.Notify(var call) -> call.accept(listener);
            case Effect.Finish(var outcome) ->
                    throw new IllegalStateException("the run ended: " + outcome);
            case Effect.Publish _,
                    Effect.Abandon _,
                    Effect.FindOlder _,
                    Effect.AskPlan _,
                    Effect.Dismiss _,
                    Effect.Leave _,
                    Effect.StartProcess _,
                    Effect.ReadVitals _,
                    Effect.RestartLink _ -> {}
        }
    }

    private void weigh(Object order) {
        long size = size(order);
        bytes += size;
        longest = Math.max(longest, size);
    }

    private long size(Object message) {
        return weighs ? wire.serialize(message).get().length : 0;
    }

    private void hear(RankEvent event) {
        answered += size(event);
        answers.add(() -> coordinator.onRankEvent(event, now));
    }

    private void answer(int rank, RankCommand order) {
        int epoch = order.epoch();
        switch (order) {
            case RankCommand.BeginPass begin ->
                    hear(new RankEvent.PassDone(rank, epoch, begin.pass(), result(rank)));
            case RankCommand.Commit commit -> {
                committed = Math.max(committed, commit.step());
                hear(new RankEvent.StepDone(rank, epoch, commit.step(), times(rank)));
            }
            case RankCommand.Prepare _ -> {
                var held = new RankEvent.HeldState(rank, committed, -1);
                LocationDigests known = locations.getOrDefault(rank, RankLocations.NONE).digests();
                // its own state is the mirror of all replicas
                hear(new RankEvent.Prepared(rank, epoch, held, List.of(held), known, ""));
            }
            case RankCommand.Resume resume -> {
                locations.computeIfPresent(
                        rank, (_, known) -> known.with(resume.links().changed()));
                hear(new RankEvent.Resumed(rank, epoch, "cpu", "kernels"));
            }
            case RankCommand.Save _, RankCommand.Fence _, RankCommand.Stop _ -> {}
        }
    }

    private StepResult result(int rank) {
        List<TensorNorm> norms =
                IntStream.range(0, TENSORS)
                        .mapToObj(
                                tensor ->
                                        new TensorNorm(
                                                "h.%d.%d".formatted(rank % STAGES, tensor), 1))
                        .toList();
        boolean last = rank % STAGES == STAGES - 1;
        return new StepResult(last ? OptionalDouble.of(1) : OptionalDouble.empty(), norms);
    }

    private RankStep times(int rank) {
        int ops = plan.training().program(rank % STAGES).ops().size();
        return new RankStep(
                rank,
                new long[ops],
                new long[ops],
                0,
                0,
                0,
                List.of(),
                0,
                List.of(),
                StepTraffic.NOTHING,
                new long[0]);
    }
}
