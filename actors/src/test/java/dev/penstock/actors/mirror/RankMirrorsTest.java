package dev.penstock.actors.mirror;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.aeron.AeronDataPlane;
import dev.penstock.actors.dataplane.aeron.AeronSettings;
import dev.penstock.actors.dataplane.aeron.DriverSettings;
import dev.penstock.actors.dataplane.aeron.EmbeddedDriver;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;
import dev.penstock.actors.spi.StageBuilder;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.Timeouts;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Three ranks of one stage each with a real data plane between them, driven by hand. */
@Timeout(60)
class RankMirrorsTest {
    private static final int RANKS = 3;
    private static final int TERM = 1 << 20;

    private final RunPlan plan = plan();
    private final MirrorRegistry registry = new MirrorRegistry();
    private final List<Weights> stages = new ArrayList<>();
    private final List<RankMirrors> ranks = new ArrayList<>();
    private final List<AutoCloseable> links = new ArrayList<>();
    private final List<Endpoint> endpoints = new ArrayList<>();
    private Device device = Devices.open(DeviceSettings.DEFAULTS);
    private long epochs;

    @BeforeEach
    void buildRanks() {
        for (int rank = 0; rank < RANKS; rank++) {
            stages.add(new Weights(rank, device).randomState(rank));
            ranks.add(new RankMirrors(rank, plan, device, registry));
        }
    }

    @AfterEach
    void closeAll() throws Exception {
        disconnect();
        ranks.forEach(RankMirrors::close);
        stages.forEach(Weights::close);
        device.close();
    }

    @Test
    void mirrorsFollowTheirRanksStepByStep() throws Exception {
        begin(MirrorLayout.ring(RANKS));

        for (long step = 1; step <= 3; step++) {
            exchange(step);
            commit(step, 0.75);

            assertMirrorsAreEqual(MirrorLayout.ring(RANKS), step);
        }
    }

    @Test
    void aCommitToldTwiceIsAppliedOnce() throws Exception {
        begin(MirrorLayout.ring(RANKS));
        exchange(1);
        commit(1, 1);

        ranks.forEach(rank -> rank.update(1, OptionalDouble.of(1), 0));

        assertMirrorsAreEqual(MirrorLayout.ring(RANKS), 1);
    }

    @Test
    void aCommitOfWhatNeverArrivedIsRefused() throws Exception {
        begin(MirrorLayout.ring(RANKS));

        assertThatThrownBy(() -> ranks.get(1).update(1, OptionalDouble.of(1), 0))
                .hasMessageContaining("commit of step 1")
                .hasMessageContaining("mirror of rank 0 is after step 0");
    }

    @Test
    void newMirrorsAreFilledBeforeTheFirstGradientsOfTheEpoch() throws Exception {
        begin(MirrorLayout.ring(RANKS));
        exchange(1);
        commit(1, 1);

        // ranks 1 and 2 share a process now: rank 1 is mirrored by rank 0 instead of rank 2
        var layout = MirrorLayout.across(List.of("a", "b", "b")).filling(List.of(1));
        assertThat(layout.holders()).containsExactly(1, 0, 0);
        keep(layout);
        assertThat(mirror(0, 1).committedStep()).isEqualTo(HeldMirror.NOTHING);
        assertThat(mirror(0, 2).committedStep()).isEqualTo(1);
        for (long step = 2; step <= 3; step++) {
            exchange(step);
            assertThat(mirror(0, 1).committedStep()).isEqualTo(step - 1);
            commit(step, 0.5);

            assertMirrorsAreEqual(layout, step);
        }
    }

    @Test
    void aMirrorThatLeavesStaysUntilEveryRankIsOpen() throws Exception {
        begin(MirrorLayout.ring(RANKS));

        keep(MirrorLayout.across(List.of("a", "b", "b")).filling(List.of(1)));

        assertThat(registry.find(2, 1).committedStep()).isZero();
        exchange(1);
        assertThatThrownBy(() -> registry.find(2, 1))
                .hasMessageContaining("rank 1 cannot start from its mirror");
    }

    @Test
    void aRankThatTakesOverIsAsFarAsItsMirror() throws Exception {
        begin(MirrorLayout.ring(RANKS));
        exchange(1);
        commit(1, 1);
        try (var successor = new Weights(1, device).randomState(99)) {

            long step = registry.find(2, 1).copyInto(1, List.of(successor), device.kernels());

            assertThat(step).isEqualTo(1);
            assertThat(successor.isEqualTo(stages.get(1))).isTrue();
            assertThat(successor.timesReplaced()).isEqualTo(1);
        }
    }

    @Test
    void aRankThatTakesOverBeforeTheCommitHasItsGradients() throws Exception {
        begin(MirrorLayout.ring(RANKS));
        exchange(1);
        try (var successor = new Weights(1, device).randomState(99)) {

            long step = registry.find(2, 1).copyInto(1, List.of(successor), device.kernels());
            successor.update(1, 0.25);
            stages.get(1).update(1, 0.25);

            assertThat(step).isZero();
            assertThat(successor.isEqualTo(stages.get(1))).isTrue();
        }
    }

    @Test
    void nobodyStartsFromAMirrorOfAnotherStep() throws Exception {
        begin(MirrorLayout.ring(RANKS));
        try (var successor = new Weights(1, device)) {
            assertThatThrownBy(
                            () ->
                                    registry.find(2, 1)
                                            .copyInto(3, List.of(successor), device.kernels()))
                    .hasMessageContaining("after step 3")
                    .hasMessageContaining("got after step 0");
        }
    }

    @Test
    void aRankThatHoldsTheSameIsAMirrorThatTakesNoMemory() {
        RunPlan replicas = wholeReplicas(1, 2);
        MirrorLayout layout = MirrorLayout.atFirst(replicas, List.of("a", "b"));
        Weights own = stages.getFirst();
        long before = device.memory().liveBytes();
        var first = new RankMirrors(0, replicas, device, registry);
        try (var successor = new Weights(0, device);
                var scope = device.memory().child("blocks", Long.MAX_VALUE)) {
            long withSuccessor = device.memory().liveBytes();
            first.build(layout, programs(true), 0);
            first.serve(List.of(own), 0, HeldMirror.NOTHING);
            first.connect(layout, List.of(own), scope);
            own.randomGradients(5);
            first.beginPass();
            first.begin(1, 1);
            assertThat(device.memory().liveBytes()).isEqualTo(withSuccessor);

            long step = registry.find(0, 1).copyInto(1, List.of(successor), device.kernels());
            successor.update(1, 0.25);
            own.update(1, 0.25);
            first.update(1, OptionalDouble.of(0.25), 0);

            assertThat(step).isZero();
            assertThat(successor.isEqualTo(own)).isTrue();
            assertThat(first.held())
                    .singleElement()
                    .satisfies(copy -> assertThat(copy.committedStep()).isEqualTo(1));
            own.randomGradients(6);
            first.beginPass();
            assertThat(registry.find(0, 1).readyStep()).isEqualTo(HeldMirror.NOTHING);
        }
        first.close();
        assertThat(device.memory().liveBytes()).isEqualTo(before);
        assertThatThrownBy(() -> registry.find(0, 1)).hasMessageContaining("holds none");
    }

    /** Every replica has all of its ranks' state. */
    static RunPlan wholeReplicas(int pipeline, int replicas) {
        Schedule order = Generators.generate("1f1b", PipelineShape.of(pipeline, 2, 1));
        return new RunPlan(
                "mirrors",
                "hash",
                order,
                order,
                new RankGrid(pipeline, 1, 1, replicas),
                Map.<ChannelKey, Integer>of(),
                new RunSteps(0, 3, 0, 0, 0, 0),
                Timeouts.DEFAULT,
                true,
                true,
                CollectiveForm.NEVER);
    }

    // ---- a run by hand --------------------------------------------------------------------------

    private void begin(MirrorLayout layout) throws Exception {
        for (RankMirrors rank : ranks) {
            rank.build(layout, programs(true), 0);
        }
        connect(layout);
    }

    private void keep(MirrorLayout layout) throws Exception {
        disconnect();
        for (RankMirrors rank : ranks) {
            rank.disconnect();
            rank.keep(layout, programs(false));
        }
        connect(layout);
    }

    private void connect(MirrorLayout layout) throws Exception {
        var driver =
                EmbeddedDriver.start(DriverSettings.inSharedMemory("mirror-test", TERM, 4 * RANKS));
        links.add(driver);
        DataPlane plane =
                AeronDataPlane.start(
                        AeronSettings.ipc(driver.directory(), ++epochs).withTermLength(TERM));
        links.add(plane);
        for (int rank = 0; rank < RANKS; rank++) {
            DeviceScope scope = device.memory().child("blocks " + rank, Long.MAX_VALUE);
            var exchange = ranks.get(rank).connect(layout, List.of(stages.get(rank)), scope);
            links.add(1, scope); // closed after the data plane and before the driver
            endpoints.add(plane.open(rank, exchange.inbound(), exchange.outbound(), new Deaf()));
        }
    }

    private void disconnect() throws Exception {
        for (AutoCloseable link : links.reversed()) {
            link.close();
        }
        links.clear();
        endpoints.clear();
    }

    private void exchange(long step) {
        for (int rank = 0; rank < RANKS; rank++) {
            stages.get(rank).randomGradients(100 * step + rank);
            ranks.get(rank).beginPass();
            ranks.get(rank).begin(step, step);
        }
        boolean done = false;
        while (!done) {
            done = true;
            for (int rank = 0; rank < RANKS; rank++) {
                done &= ranks.get(rank).advance(endpoints.get(rank)) == MirrorProgress.DONE;
            }
        }
    }

    private void commit(long step, double clipFactor) {
        for (int rank = 0; rank < RANKS; rank++) {
            stages.get(rank).update(step, clipFactor);
            ranks.get(rank).update(step, OptionalDouble.of(clipFactor), 0);
        }
    }

    private HeldMirror mirror(int holder, int rank) {
        return registry.find(holder, rank);
    }

    private void assertMirrorsAreEqual(MirrorLayout layout, long step) {
        for (int rank = 0; rank < RANKS; rank++) {
            HeldMirror mirror = mirror(layout.holderOf(rank), rank);
            assertThat(mirror.committedStep()).as("mirror of rank %d", rank).isEqualTo(step);
            assertThat(stages.get(rank).isEqualTo(mirror.states().getFirst()))
                    .as("rank %d and its mirror after step %d", rank, step)
                    .isTrue();
        }
    }

    private static StageBuilder programs(boolean filled) {
        return new StageBuilder() {
            @Override
            public StageProgram create(int stage, RankPlace place, Device device) {
                throw new AssertionError("only mirrors are built here");
            }

            @Override
            public StageMirror mirror(int stage, RankPlace place, Device device) {
                var mirror = new Weights(stage, device);
                return filled ? mirror.randomState(stage) : mirror;
            }
        };
    }

    private static RunPlan plan() {
        Schedule order = Generators.generate("1f1b", PipelineShape.of(RANKS, 2, 1));
        return new RunPlan(
                "mirrors",
                "hash",
                order,
                order,
                Map.<ChannelKey, Integer>of(),
                new RunSteps(0, 3, 0, 0, 0, 0),
                Timeouts.DEFAULT,
                true);
    }

    /** The ranks are asked again and again. */
    private record Deaf() implements FrameListener {
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
