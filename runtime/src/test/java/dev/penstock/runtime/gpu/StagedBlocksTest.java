package dev.penstock.runtime.gpu;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.collective.GroupRole;
import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.collective.wire.DataPlaneGroup;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.aeron.AeronDataPlane;
import dev.penstock.actors.dataplane.aeron.AeronSettings;
import dev.penstock.actors.dataplane.aeron.DriverSettings;
import dev.penstock.actors.dataplane.aeron.EmbeddedDriver;
import dev.penstock.actors.mirror.HeldMirror;
import dev.penstock.actors.mirror.MirrorExchange;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.mirror.MirrorProgress;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Sums and mirrors of ranks on GPUs that know each other by the data plane alone: what crosses goes
 * through pinned memory. Copies last, so that who does not wait for one has other values.
 */
@Timeout(60)
class StagedBlocksTest {
    private static final int MEMBERS = 3;

    /** Two blocks of each part, the last not whole. */
    private static final int ELEMENTS = 3 * 300_000 + 7;

    private static final int TERM = 1 << 18;
    private static final RankWaits NOBODY_CALLS =
            new RankWaits() {
                @Override
                public boolean isCalledOff() {
                    return false;
                }

                @Override
                public void waitsFor(String what) {}

                @Override
                public void goesOn() {}
            };

    private final List<Device> devices = new ArrayList<>();
    private final List<Endpoint> endpoints = new ArrayList<>();

    @BeforeEach
    void gpus() {
        EmulatedGpus.requireEmulated();
        for (int gpu = 0; gpu < MEMBERS; gpu++) {
            devices.add(Devices.open(DeviceSettings.DEFAULTS.withKind(Kind.CUDA).withGpu(gpu)));
        }
        EmulatedGpus.set("COPY_MILLIS", "1");
    }

    @AfterEach
    void close() {
        EmulatedGpus.set("COPY_MILLIS", "");
        devices.forEach(Device::close);
    }

    @ParameterizedTest
    @ValueSource(longs = {CollectiveForm.NEVER, 0})
    void sumsOfMembersInSeveralProcessesAreThoseInMemberOrder(long ringFromBytes) {
        List<Tensor> tensors = tensors();
        float[] expected = sum(tensors);

        together(ringFromBytes, member -> group -> group.allReduce(tensors.get(member)));

        for (Tensor tensor : tensors) {
            assertThat(tensor.contents().toArray(ValueLayout.JAVA_FLOAT)).isEqualTo(expected);
        }
    }

    @Test
    void partsAreSummedAndGathered() {
        var map = new ShardMap(ELEMENTS, MEMBERS);
        List<Tensor> tensors = tensors();
        float[] expected = sum(tensors);

        together(
                CollectiveForm.NEVER,
                member -> group -> group.reduceScatter(tensors.get(member), map));
        together(
                CollectiveForm.NEVER, member -> group -> group.allGather(tensors.get(member), map));

        for (Tensor tensor : tensors) {
            assertThat(tensor.contents().toArray(ValueLayout.JAVA_FLOAT)).isEqualTo(expected);
        }
    }

    private List<Tensor> tensors() {
        List<Tensor> tensors = new ArrayList<>();
        for (Device device : devices) {
            tensors.add(random(device, "gradient", ELEMENTS, tensors.size()));
        }
        return tensors;
    }

    private static Tensor random(Device device, String name, int elements, long seed) {
        Tensor tensor = device.memory().tensor(name, DType.F32, 1, elements);
        var random = new Random(seed);
        float[] values = new float[elements];
        for (int i = 0; i < elements; i++) {
            values[i] = (float) random.nextGaussian();
        }
        tensor.write(MemorySegment.ofArray(values));
        return tensor;
    }

    private static float[] sum(List<Tensor> tensors) {
        float[] sum = tensors.getFirst().contents().toArray(ValueLayout.JAVA_FLOAT);
        for (Tensor tensor : tensors.subList(1, tensors.size())) {
            float[] addend = tensor.contents().toArray(ValueLayout.JAVA_FLOAT);
            for (int i = 0; i < sum.length; i++) {
                sum[i] += addend[i];
            }
        }
        return sum;
    }

    /** One collective of all members, moved on in turn. */
    private void together(
            long ringFromBytes, Function<Integer, Function<DataPlaneGroup, Collective>> begin) {
        List<DeviceScope> scopes = new ArrayList<>();
        try (var driver = EmbeddedDriver.start(DriverSettings.inSharedMemory("gpus", TERM, 12));
                var plane =
                        AeronDataPlane.start(
                                AeronSettings.ipc(driver.directory(), 7).withTermLength(TERM))) {
            List<Collective> collectives = new ArrayList<>();
            List<DataPlaneGroup> groups = new ArrayList<>();
            for (int member = 0; member < MEMBERS; member++) {
                Device device = devices.get(member);
                DeviceScope scope = device.memory().child("blocks", Long.MAX_VALUE);
                scopes.add(scope);
                var group =
                        new DataPlaneGroup(
                                GroupRole.REPLICAS,
                                IntStream.range(0, MEMBERS).boxed().toList(),
                                member,
                                MEMBERS,
                                scope,
                                device.kernels(),
                                Duration.ofSeconds(30),
                                ringFromBytes,
                                NOBODY_CALLS);
                assertThat(scope.liveBytes()).isEqualTo(DataPlaneGroup.slotBytes(MEMBERS, true));
                group.bind(plane.open(member, group.inbound(), group.outbound(), new Deaf()));
                groups.add(group);
            }
            for (int member = 0; member < MEMBERS; member++) {
                collectives.add(begin.apply(member).apply(groups.get(member)));
            }
            boolean done = false;
            while (!done) {
                done = true;
                for (Collective collective : collectives) {
                    done &= collective.advance();
                }
            }
        } finally {
            scopes.forEach(DeviceScope::close);
        }
    }

    /** The whole state first, since the mirrors are empty; a block gathers small tensors. */
    @Test
    void mirrorsOnOtherGpusAreEqual() {
        List<State> own = new ArrayList<>();
        List<State> mirrors = new ArrayList<>();
        for (int rank = 0; rank < 2; rank++) {
            own.add(State.random(devices.get(rank), 10L * rank));
            mirrors.add(State.random(devices.get(1 - rank), 99));
        }
        List<HeldMirror> held =
                List.of(
                        new HeldMirror(1, List.of(mirrors.get(1)), HeldMirror.NOTHING),
                        new HeldMirror(0, List.of(mirrors.get(0)), HeldMirror.NOTHING));
        MirrorLayout layout = MirrorLayout.ring(2).filling(List.of(0, 1));
        List<DeviceScope> scopes = new ArrayList<>();

        try (var driver = EmbeddedDriver.start(DriverSettings.inSharedMemory("gpus", TERM, 4));
                var plane =
                        AeronDataPlane.start(
                                AeronSettings.ipc(driver.directory(), 7).withTermLength(TERM))) {
            List<MirrorExchange> exchanges = new ArrayList<>();
            for (int rank = 0; rank < 2; rank++) {
                Device device = devices.get(rank);
                scopes.add(device.memory().child("blocks", Long.MAX_VALUE));
                var exchange =
                        new MirrorExchange(
                                rank,
                                layout,
                                List.of(own.get(rank)),
                                List.of(held.get(rank)),
                                scopes.getLast(),
                                device.kernels());
                endpoints.add(
                        plane.open(rank, exchange.inbound(), exchange.outbound(), new Deaf()));
                exchange.begin(1, 1);
                exchanges.add(exchange);
            }
            boolean done = false;
            while (!done) {
                done = true;
                for (int rank = 0; rank < 2; rank++) {
                    done &= exchanges.get(rank).advance(endpoints.get(rank)) == MirrorProgress.DONE;
                }
            }
        } finally {
            scopes.forEach(DeviceScope::close);
        }

        for (int rank = 0; rank < 2; rank++) {
            assertThat(mirrors.get(rank).values()).isEqualTo(own.get(rank).values());
            assertThat(held.get(rank).committedStep()).isZero();
            assertThat(held.get(rank).readyStep()).isEqualTo(1);
        }
    }

    /** Of one large and two small tensors. */
    private record State(List<NamedTensor> gradients, List<NamedTensor> tensors)
            implements TrainedState, StageMirror {
        static State random(Device device, long seed) {
            return new State(some(device, "gradient", seed), some(device, "weight", seed + 3));
        }

        private static List<NamedTensor> some(Device device, String name, long seed) {
            List<NamedTensor> tensors = new ArrayList<>();
            for (int elements : new int[] {5, 1_100_000, 31}) {
                String each = name + " " + tensors.size();
                Tensor tensor =
                        StagedBlocksTest.random(device, each, elements, seed + tensors.size());
                tensors.add(new NamedTensor(each, List.of(elements), tensor));
            }
            return tensors;
        }

        List<List<Integer>> values() {
            List<List<Integer>> values = new ArrayList<>();
            for (List<NamedTensor> each : List.of(gradients, tensors)) {
                for (NamedTensor named : each) {
                    values.add(
                            IntStream.of(named.tensor().contents().toArray(ValueLayout.JAVA_INT))
                                    .boxed()
                                    .toList());
                }
            }
            return values;
        }

        @Override
        public int stage() {
            return 0;
        }

        @Override
        public TrainedState trained() {
            return this;
        }

        @Override
        public void update(long step, double clipFactor) {}

        @Override
        public void replaced() {}

        @Override
        public void close() {}
    }

    /** Members look for themselves. */
    private static final class Deaf implements FrameListener {
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
