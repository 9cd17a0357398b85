package dev.penstock.benchmarks;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.GroupRole;
import dev.penstock.actors.collective.OpenGroup;
import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.collective.shared.CollectiveRegistry;
import dev.penstock.actors.collective.wire.DataPlaneGroup;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Tensor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** The members of a group, each on its own thread and with its own one-threaded device. */
final class CollectiveMembers implements AutoCloseable {
    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final DeviceSettings ONE_THREAD =
            new DeviceSettings(
                    DeviceSettings.Kind.CPU,
                    1,
                    DeviceSettings.Gemm.AUTO,
                    0,
                    0,
                    Long.MAX_VALUE,
                    false,
                    false);

    /** The collective that the members run. */
    enum Work {
        ALL_REDUCE,
        REDUCE_SCATTER,
        ALL_GATHER
    }

    private record Member(
            Device device, CollectiveGroup group, Tensor tensor, AutoCloseable link) {}

    private final List<Member> members = new ArrayList<>();
    private final ExecutorService threads;
    private final int elements;

    /**
     * @param plane over which the members exchange blocks; null for shared memory
     * @param ringFromBytes the size from which on they send tensors round a ring
     */
    CollectiveMembers(
            int count, long bytes, int epoch, @Nullable DataPlane plane, long ringFromBytes) {
        this.threads = Executors.newFixedThreadPool(count);
        this.elements = Math.toIntExact(bytes / Float.BYTES);
        List<Integer> ranks = IntStream.range(0, count).boxed().toList();
        var registry = new CollectiveRegistry();
        for (int index : ranks) {
            Device device = Devices.open(ONE_THREAD);
            Tensor tensor = device.memory().tensor("summed", DType.F32, 1, elements);
            if (plane == null) {
                OpenGroup group =
                        registry.join(
                                epoch,
                                GroupRole.REPLICAS,
                                ranks,
                                index,
                                device.kernels(),
                                LIMIT,
                                new Patient());
                members.add(new Member(device, group, tensor, group));
            } else {
                var group =
                        new DataPlaneGroup(
                                GroupRole.REPLICAS,
                                ranks,
                                index,
                                count,
                                device.memory(),
                                device.kernels(),
                                LIMIT,
                                ringFromBytes,
                                new Patient());
                Endpoint endpoint =
                        plane.open(index, epoch, group.inbound(), group.outbound(), new Patient());
                group.bind(endpoint);
                members.add(new Member(device, group, tensor, endpoint));
            }
        }
    }

    /** Returns the nanoseconds that all members together take for so many rounds. */
    long run(Work work, int rounds) {
        long begun = System.nanoTime();
        List<Future<?>> all = new ArrayList<>();
        for (Member member : members) {
            all.add(threads.submit(() -> run(member, work, rounds)));
        }
        for (Future<?> each : all) {
            try {
                each.get();
            } catch (InterruptedException | ExecutionException e) {
                throw new IllegalStateException("a member failed", e);
            }
        }
        return System.nanoTime() - begun;
    }

    private void run(Member member, Work work, int rounds) {
        CollectiveGroup group = member.group();
        var map = new ShardMap(elements, members.size());
        for (int i = 0; i < rounds; i++) {
            Collective begun =
                    switch (work) {
                        case ALL_REDUCE -> group.allReduce(member.tensor());
                        case REDUCE_SCATTER -> group.reduceScatter(member.tensor(), map);
                        case ALL_GATHER -> group.allGather(member.tensor(), map);
                    };
            group.await(begun);
        }
    }

    @Override
    public void close() {
        threads.close();
        try {
            for (Member member : members) {
                member.link().close();
            }
        } catch (Exception e) {
            throw new IllegalStateException("cannot close a member", e);
        }
        members.forEach(member -> member.device().close());
    }

    /** Waits for as long as it takes, and is never called off. */
    private static final class Patient implements RankWaits, FrameListener {
        @Override
        public boolean isCalledOff() {
            return false;
        }

        @Override
        public void waitsFor(String what) {}

        @Override
        public void goesOn() {}

        @Override
        public void onFrame(FrameKey key) {}

        @Override
        public void onCredit(ChannelKey channel) {}

        @Override
        public void onFailure(DataPlaneException failure) {}
    }
}
