package dev.penstock.runtime.model;

import dev.penstock.actors.collective.GroupRole;
import dev.penstock.actors.collective.OpenGroup;
import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.actors.collective.shared.CollectiveRegistry;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.StageGroups;
import dev.penstock.actors.spi.StepResult;
import dev.penstock.actors.spi.TensorNorm;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.stage.GptStage;
import dev.penstock.schedules.ir.Schedule;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Function;
import java.util.stream.IntStream;

/** Replicas of a pipeline, each on a thread and a device of its own, that sum and gather. */
final class ReplicatedDriver implements AutoCloseable {
    private static final RankWaits UNTOLD =
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

    private final Schedule training;
    private final List<PipelineDriver> replicas = new ArrayList<>();
    private final List<Map<Integer, OpenGroup>> groups = new ArrayList<>();
    private final CollectiveRegistry registry = new CollectiveRegistry();
    private final List<Device> devices = new ArrayList<>();
    private final List<ExecutorService> threads = new ArrayList<>();
    private final List<Double> losses = new ArrayList<>();
    private Map<String, float[]> gradients = Map.of();

    /**
     * @param settings of a replica
     * @param order computations alone
     * @param batches of the whole step; replica d takes the micro-batches from d M on
     */
    ReplicatedDriver(GptSettings settings, Schedule order, BatchSource batches) {
        this(settings, order, batches, ParameterSource.none());
    }

    ReplicatedDriver(
            GptSettings settings, Schedule order, BatchSource batches, ParameterSource source) {
        int n = settings.grid().data();
        var replicated = new ReplicatedOrder(settings, order);
        training = replicated.training();
        Schedule evaluation = replicated.evaluation();
        for (int d = 0; d < n; d++) {
            int replica = d;
            threads.add(Executors.newSingleThreadExecutor());
            Device device =
                    Devices.open(DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.REFERENCE));
            groups.add(new HashMap<>());
            devices.add(device);
            replicas.add(
                    new PipelineDriver(
                            device, settings, training, evaluation, batches, source, 0, replica));
        }
        connect(1);
    }

    /** Connects the replicas for an epoch. */
    private void connect(int epoch) {
        for (int d = 0; d < replicas.size() && replicas.size() > 1; d++) {
            int replica = d;
            Map<Integer, OpenGroup> own = groups.get(d);
            own.values().forEach(OpenGroup::close);
            own.clear();
            replicas.get(d)
                    .connectRanks(
                            rank ->
                                    new StageGroups(
                                            SoloGroup.GROUP,
                                            SoloGroup.GROUP,
                                            own.computeIfAbsent(
                                                    rank,
                                                    _ ->
                                                            registry.join(
                                                                    epoch,
                                                                    GroupRole.REPLICAS,
                                                                    members(rank),
                                                                    replica,
                                                                    devices.get(replica).kernels(),
                                                                    Duration.ofSeconds(20),
                                                                    UNTOLD))));
        }
    }

    private List<Integer> members(int rank) {
        int ranks = training.shape().ranks();
        return IntStream.range(0, replicas.size()).mapToObj(d -> d * ranks + rank).toList();
    }

    /**
     * Begins a training step, which is left by every replica after this many ops of each rank, and
     * meets again in the next epoch.
     *
     * @param ops by replica; less than 0: it has not even begun
     */
    void abandon(long step, List<Integer> ops, int nextEpoch)
            throws InterruptedException, ExecutionException {
        all(
                replica -> {
                    int done = ops.get(replicas.indexOf(replica));
                    if (done >= 0) {
                        replica.abandon(step, done);
                    }
                    return step;
                });
        connect(nextEpoch);
    }

    /** What each replica runs. */
    Schedule training() {
        return training;
    }

    /** Runs a training step. */
    void train(long step, double clipNorm) throws InterruptedException, ExecutionException {
        train(step, clipNorm, List.of());
    }

    /**
     * Runs a training step of which some replicas do not update all stages.
     *
     * @param updated by replica, how many stages are updated; all of those that have no number
     */
    void train(long step, double clipNorm, List<Integer> updated)
            throws InterruptedException, ExecutionException {
        List<List<StepResult>> results = all(replica -> replica.compute(step));
        Map<String, Double> squares = new TreeMap<>();
        double loss = 0;
        for (List<StepResult> ofReplica : results) {
            for (StepResult result : ofReplica) {
                loss += result.loss().orElse(0);
                for (TensorNorm norm : result.norms()) {
                    squares.merge(norm.parameter(), norm.squaredNorm(), Double::sum);
                }
            }
        }
        losses.add(loss / replicas.size());
        gradients = whole(GptStage::gradients);
        double norm = Math.sqrt(squares.values().stream().mapToDouble(d -> d).sum());
        double clip = Math.min(1, clipNorm / (norm + 1e-6));
        all(
                replica -> {
                    int index = replicas.indexOf(replica);
                    int stages =
                            index < updated.size() ? updated.get(index) : replica.stages().size();
                    replica.stages().subList(0, stages).forEach(s -> s.update(step, clip));
                    return step;
                });
    }

    double evaluate(long index) throws InterruptedException, ExecutionException {
        return all(replica -> replica.evaluate(index)).stream()
                .mapToDouble(d -> d)
                .average()
                .orElseThrow();
    }

    private <T> List<T> all(Function<PipelineDriver, T> work)
            throws InterruptedException, ExecutionException {
        List<Future<T>> futures = new ArrayList<>();
        for (int d = 0; d < replicas.size(); d++) {
            PipelineDriver replica = replicas.get(d);
            Callable<T> call = () -> work.apply(replica);
            futures.add(threads.get(d).submit(call));
        }
        List<T> done = new ArrayList<>();
        for (Future<T> future : futures) {
            done.add(future.get());
        }
        return done;
    }

    List<Double> losses() {
        return losses;
    }

    /** Of the last step, before clipping. */
    Map<String, float[]> gradients() {
        return gradients;
    }

    Map<String, float[]> state() throws InterruptedException, ExecutionException {
        return whole(GptStage::state);
    }

    List<PipelineDriver> replicas() {
        return replicas;
    }

    /** Bytes that a rank of a replica has sent in collectives. */
    long sentBytes(int replica, int rank) {
        return Objects.requireNonNull(groups.get(replica).get(rank)).sentBytes();
    }

    /** Whole tensors from the pieces of all ranks, of which every element must be there once. */
    private Map<String, float[]> whole(Function<GptStage, List<NamedTensor>> tensors)
            throws InterruptedException, ExecutionException {
        List<List<NamedTensor>> told =
                all(
                        replica ->
                                replica.stages().stream()
                                        .flatMap(stage -> tensors.apply(stage).stream())
                                        .toList());
        Map<String, float[]> wholes = new TreeMap<>();
        Map<String, Long> covered = new TreeMap<>();
        try (Arena arena = Arena.ofConfined()) {
            Map<String, MemorySegment> segments = new TreeMap<>();
            for (List<NamedTensor> ofReplica : told) {
                for (NamedTensor t : ofReplica) {
                    MemorySegment whole =
                            segments.computeIfAbsent(
                                    t.name(),
                                    _ -> arena.allocate(t.piece().wholeElements() * 4, 64));
                    t.piece()
                            .insert(
                                    MemorySegment.ofArray(PipelineDriver.floats(t.tensor()))
                                            .asSlice(0, t.piece().elements() * 4),
                                    whole);
                    covered.merge(t.name(), t.piece().elements(), Long::sum);
                }
            }
            segments.forEach(
                    (name, segment) -> {
                        if (covered.getOrDefault(name, 0L) != segment.byteSize() / 4) {
                            throw new AssertionError(name + ": " + covered.getOrDefault(name, 0L));
                        }
                        wholes.put(name, segment.toArray(ValueLayout.JAVA_FLOAT));
                    });
        }
        return wholes;
    }

    @Override
    public void close() {
        threads.forEach(ExecutorService::close);
        groups.forEach(own -> own.values().forEach(OpenGroup::close));
        replicas.forEach(PipelineDriver::close);
    }
}
