package dev.penstock.actors.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import akka.actor.ActorSystem;
import akka.actor.testkit.typed.javadsl.TestInbox;
import akka.serialization.Serialization;
import akka.serialization.SerializationExtension;
import dev.penstock.actors.dataplane.LinkTraffic;
import dev.penstock.actors.precision.Overflow;
import dev.penstock.actors.spi.MemoryUse;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.RankSteps;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunMember;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.lower.Lowering;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** What a listener is told here is what a listener is told there. */
class NewsTest {
    private static final RankStep FIRST =
            RankSteps.of(0, new long[] {1, 2}, new long[] {3, 4}, 5, 6, 7, 8);
    private static final RankStep SECOND =
            RankSteps.of(1, new long[] {9}, new long[] {10}, 11, 12, 13, 14);
    private static final StepReport STEP =
            new StepReport(3, 2.5, 0.5, 1.0, 100, 200, List.of(FIRST, SECOND));

    private static final RecoveryReport RECOVERY =
            new RecoveryReport(
                    "rank 1 died", 2, List.of(1), RecoveryReport.Restart.MIRROR, 5, 6, 0, 3);

    private static final RunMember SPARE =
            new RunMember(Optional.empty(), "worker-1", 4711, "0.1", 0);

    private final List<String> heard = new ArrayList<>();
    private final RunListener listener =
            (RunListener)
                    Proxy.newProxyInstance(
                            RunListener.class.getClassLoader(),
                            new Class<?>[] {RunListener.class},
                            (_, method, arguments) ->
                                    heard.add(method.getName() + Arrays.toString(arguments)));
    private final NewsReader reader =
            new NewsReader(
                    listener,
                    new NewsReader.Reader() {
                        @Override
                        public void onLine(String line) {
                            heard.add(line);
                        }

                        @Override
                        public void onEnded(RunOutcome outcome, String summary) {
                            heard.add(outcome + summary);
                        }
                    });

    private static final PlanRevision REVISION =
            new PlanRevision(1, List.of("pipeline.partition=[3, 1]"), "0a", "rank 1 is slow");

    private static final Overflow OVERFLOW = new Overflow(4, 1, 2, 65536, 32768);

    private static final Schedule ORDER =
            Lowering.lower(Generators.generate("1f1b", PipelineShape.of(2, 2)));

    @Test
    void everyEventArrivesAsItWas() {
        NewsWriter writer = new NewsWriter(reader::read);

        writer.onOpened(List.of("cpu", "gpu"), "f");
        writer.onPlaced(List.of(0, 0, 2));
        writer.onStep(STEP);
        writer.onOverflow(OVERFLOW);
        writer.onEvaluation(3, 1.5, OptionalDouble.empty());
        writer.onEvaluation(4, 1.25, OptionalDouble.of(0.75));
        writer.onCheckpoint(3, 4, 5);
        writer.onCheckpointFailed(3, "disk full");
        writer.onRecovering(2, "rank 1 died");
        writer.onRecovery(RECOVERY);
        writer.onStraggler(1, 20, 1.75);
        writer.onRevised(REVISION, ORDER, 20);
        writer.onPlanNote("it has won much");
        writer.onMembers(List.of(SPARE));
        writer.onStall("rank 0 waits");

        assertThat(heard)
                .containsExactly(
                        "onOpened[[cpu, gpu], f]",
                        "onPlaced[[0, 0, 2]]",
                        "onStep[" + STEP + "]",
                        "onOverflow[" + OVERFLOW + "]",
                        "onEvaluation[3, 1.5, OptionalDouble.empty]",
                        "onEvaluation[4, 1.25, OptionalDouble[0.75]]",
                        "onCheckpoint[3, 4, 5]",
                        "onCheckpointFailed[3, disk full]",
                        "onRecovering[2, rank 1 died]",
                        "onRecovery[" + RECOVERY + "]",
                        "onStraggler[1, 20, 1.75]",
                        "onRevised[%s, %s, 20]".formatted(REVISION, ORDER),
                        "onPlanNote[it has won much]",
                        "onMembers[[" + SPARE + "]]",
                        "onStall[rank 0 waits]");
    }

    /** A default method of the interface that nobody forwards would be lost on the way. */
    @Test
    void noEventOfAListenerIsLeftOut() {
        for (Method event : RunListener.class.getMethods()) {
            assertThat(NewsWriter.class.getDeclaredMethods())
                    .filteredOn(own -> !Modifier.isStatic(own.getModifiers()))
                    .extracting(Method::getName)
                    .as("NewsWriter forwards %s", event.getName())
                    .contains(event.getName());
        }
    }

    /** What is longer than a frame of the control plane is lost. */
    @Test
    void newsOfAThousandRanksFitsAFrame() {
        int ranks = 1000;
        ActorSystem system = ActorSystem.create("news");
        Serialization wire = SerializationExtension.get(system);
        var longest = new AtomicInteger();
        var told = new AtomicInteger();
        var writer =
                new NewsWriter(
                        news -> {
                            int bytes = wire.serialize(news).get().length;
                            longest.accumulateAndGet(bytes, Math::max);
                            told.incrementAndGet();
                        });
        List<Integer> all = IntStream.range(0, ranks).boxed().toList();

        writer.onOpened(Collections.nCopies(ranks, "NVIDIA H100 80GB HBM3, 79.6 GiB"), "f");
        writer.onPlaced(all);
        writer.onStep(
                new StepReport(
                        3,
                        2.5,
                        0.5,
                        1.0,
                        100,
                        200,
                        all.stream().map(rank -> stepOf(rank, ranks)).toList()));
        writer.onRecovery(
                new RecoveryReport(
                        "all died", 2, all, RecoveryReport.Restart.CHECKPOINT, 5, 6, 0, 3));
        writer.onMembers(
                all.stream()
                        .map(rank -> new RunMember(Optional.of(rank), "worker-" + rank, 1, "1", 9))
                        .toList());
        system.terminate();

        assertThat(told).hasValue(5 + ranks);
        assertThat(longest).hasValueLessThan(2 << 20);
    }

    /** A rank of 1,000 micro-batches, with a link to every other one. */
    private static RankStep stepOf(int rank, int ranks) {
        long[] times = LongStream.range(0, 6000).map(op -> 1_000_000_000_000L + op).toArray();
        return new RankStep(
                rank,
                times,
                times,
                1,
                2,
                3,
                MemoryUse.ALL.stream().map(use -> new MemoryUse(use, 1L << 40)).toList(),
                4,
                IntStream.range(0, ranks)
                        .mapToObj(peer -> new LinkTraffic(peer, 1L << 40, 1L << 40, 9, 9, 9, 9))
                        .toList(),
                StepTraffic.NOTHING,
                times);
    }

    @Test
    void whoFollowsLaterHearsTheOrderOfNow() {
        var followers = new Followers();
        var writer = new NewsWriter(followers::tell);
        writer.onRevised(new PlanRevision(1, List.of(), "", ""), ORDER, 10);
        writer.onRevised(REVISION, ORDER, 20);
        TestInbox<RunNews> newcomer = TestInbox.create();

        followers.follow(newcomer.getRef());

        assertThat(newcomer.getAllReceived())
                .containsExactly(new RunNews.Revised(REVISION, ScheduleText.print(ORDER), 20));
    }

    @Test
    void halfAStepIsLeftOut() {
        reader.read(new RunNews.StepOfRank(2, SECOND));
        reader.read(new RunNews.Step(3, 2.5, 0.5, 1.0, 100, 200, 2, 0));
        reader.read(new RunNews.StepOfRank(3, FIRST));
        reader.read(new RunNews.Step(4, 2.5, 0.5, 1.0, 100, 200, 1, 0));
        reader.read(new RunNews.StepOfRank(4, FIRST));

        assertThat(heard).hasSize(1).first().asString().contains("step=4");
    }
}
