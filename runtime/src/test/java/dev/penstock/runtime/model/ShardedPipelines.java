package dev.penstock.runtime.model;

import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.GroupRole;
import dev.penstock.actors.collective.OpenGroup;
import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.actors.collective.shared.CollectiveRegistry;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.StageGroups;
import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.stage.GptStage;
import dev.penstock.schedules.ir.Schedule;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.stream.IntStream;

/** A pipeline for every tensor shard, each on a thread and a device of its own. */
public final class ShardedPipelines implements AutoCloseable {
    private static final Duration LIMIT = Duration.ofSeconds(60);

    private final List<ExecutorService> threads;
    private final List<Device> devices;
    private final List<OpenGroup> groups;

    /** By shard and axis, where shards are a mesh. */
    private final List<List<CollectiveGroup>> mesh;

    private final List<PipelineDriver> drivers;
    private final AtomicBoolean failed = new AtomicBoolean();

    public ShardedPipelines(
            DeviceSettings device,
            GptSettings settings,
            Schedule order,
            BatchSource batches,
            ParameterSource source) {
        List<Integer> ranks = IntStream.range(0, settings.grid().tensor()).boxed().toList();
        CollectiveRegistry registry = new CollectiveRegistry();
        threads = ranks.stream().map(_ -> Executors.newSingleThreadExecutor()).toList();
        devices = ranks.stream().map(_ -> Devices.open(device)).toList();
        groups =
                ranks.stream()
                        .map(
                                i ->
                                        registry.join(
                                                1,
                                                GroupRole.TENSOR,
                                                ranks,
                                                i,
                                                devices.get(i).kernels(),
                                                LIMIT,
                                                new Waits()))
                        .toList();
        TensorMesh shape = settings.grid().mesh();
        mesh =
                ranks.stream()
                        .map(
                                i ->
                                        IntStream.range(0, TensorMesh.AXES)
                                                .mapToObj(axis -> line(registry, shape, i, axis))
                                                .toList())
                        .toList();
        drivers =
                together(
                        ranks,
                        (i, _) -> {
                            var driver =
                                    new PipelineDriver(
                                            devices.get(i), settings, order, batches, source, i);
                            driver.connect(
                                    new StageGroups(
                                            groups.get(i),
                                            SoloGroup.GROUP,
                                            SoloGroup.GROUP,
                                            mesh.get(i)));
                            return driver;
                        });
    }

    private CollectiveGroup line(
            CollectiveRegistry registry, TensorMesh shape, int shard, int axis) {
        if (shape.size(axis) == 1) {
            return SoloGroup.GROUP;
        }
        List<Integer> members = shape.line(shard, axis);
        return registry.join(
                1,
                GroupRole.OF_AXES.get(axis),
                members,
                members.indexOf(shard),
                devices.get(shard).kernels(),
                LIMIT,
                new Waits());
    }

    private final class Waits implements RankWaits {
        @Override
        public boolean isCalledOff() {
            return failed.get();
        }

        @Override
        public void waitsFor(String what) {}

        @Override
        public void goesOn() {}
    }

    /** Does the same on all shards at once; what each found. */
    public <R> List<R> onAll(Function<PipelineDriver, R> work) {
        return together(drivers, (_, driver) -> work.apply(driver));
    }

    private <A, R> List<R> together(List<A> arguments, BiFunction<Integer, A, R> work) {
        List<Future<R>> futures = new ArrayList<>();
        for (int i = 0; i < arguments.size(); i++) {
            int index = i;
            futures.add(
                    threads.get(i)
                            .submit(
                                    () -> {
                                        try {
                                            return work.apply(index, arguments.get(index));
                                        } catch (RuntimeException | Error e) {
                                            failed.set(true);
                                            throw e;
                                        }
                                    }));
        }
        List<R> results = new ArrayList<>();
        for (Future<R> future : futures) {
            try {
                results.add(future.get());
            } catch (ExecutionException e) {
                throw new IllegalStateException("shard " + results.size(), e.getCause());
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
        return results;
    }

    /** A training step on all shards; its loss. */
    public double train(long step) {
        return mean(onAll(driver -> driver.train(step)));
    }

    public double evaluate(long index) {
        return mean(onAll(driver -> driver.evaluate(index)));
    }

    /** Of those that report a loss, as the supervisor has it. */
    private static double mean(List<Double> losses) {
        return losses.stream()
                .filter(loss -> !loss.isNaN())
                .mapToDouble(Double::doubleValue)
                .average()
                .orElseThrow();
    }

    /** Whole gradients of the last step, put together from what each shard counts. */
    public Map<String, float[]> gradients() {
        return whole(GptStage::gradients, PipelineDriver::gradients);
    }

    /** Whole parameters and optimizer state. */
    public Map<String, float[]> state() {
        return whole(GptStage::state, PipelineDriver::state);
    }

    /** Every element of every tensor has to be counted by exactly one shard. */
    private Map<String, float[]> whole(
            Function<GptStage, List<NamedTensor>> pieces,
            Function<PipelineDriver, Map<String, float[]>> values) {
        Map<String, float[]> whole = new TreeMap<>();
        Map<String, Long> counted = new TreeMap<>();
        for (PipelineDriver driver : drivers) {
            Map<String, float[]> found = values.apply(driver);
            for (GptStage stage : driver.stages()) {
                for (NamedTensor named : pieces.apply(stage)) {
                    TensorPiece piece = named.piece();
                    float[] into =
                            whole.computeIfAbsent(
                                    named.name(),
                                    _ -> new float[Math.toIntExact(piece.wholeElements())]);
                    counted.merge(named.name(), piece.elements(), Long::sum);
                    float[] own = Objects.requireNonNull(found.get(named.name()));
                    piece.insert(MemorySegment.ofArray(own), MemorySegment.ofArray(into));
                }
            }
        }
        whole.forEach(
                (name, tensor) -> {
                    if (counted.getOrDefault(name, 0L) != tensor.length) {
                        throw new AssertionError(
                                "%s has %d elements, the shards count %d"
                                        .formatted(name, tensor.length, counted.get(name)));
                    }
                });
        return whole;
    }

    /** Bytes that a shard has sent to the others. */
    public long sentBytes(int shard) {
        return groups.get(shard).sentBytes()
                + mesh.get(shard).stream().mapToLong(CollectiveGroup::sentBytes).sum();
    }

    public List<PipelineDriver> drivers() {
        return drivers;
    }

    @Override
    public void close() {
        onAll(
                driver -> {
                    driver.close();
                    return 0;
                });
        threads.forEach(ExecutorService::close);
    }
}
