package dev.penstock.runtime.model;

import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.GroupRole;
import dev.penstock.actors.collective.OpenGroup;
import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.actors.collective.shared.CollectiveRegistry;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StageGroups;
import dev.penstock.actors.spi.StepResult;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.stage.GptStage;
import dev.penstock.schedules.ir.Schedule;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Function;
import java.util.function.Predicate;

/** All ranks of a grid: a thread and a device for each, which runs the stages of its pipeline. */
final class GridDriver implements AutoCloseable {
    private static final Duration PATIENCE = Duration.ofSeconds(120);
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

    private final List<RankPlace> places = new ArrayList<>();
    private final List<PipelineDriver> drivers = new ArrayList<>();
    private final List<ExecutorService> threads = new ArrayList<>();
    private final List<OpenGroup> groups = new ArrayList<>();
    private final CollectiveRegistry registry = new CollectiveRegistry();
    private Map<String, float[]> gradients = Map.of();

    /**
     * @param order computations alone
     */
    GridDriver(GptSettings settings, Schedule order, BatchSource batches, ParameterSource source) {
        RankGrid grid = settings.grid();
        var lowered = new ReplicatedOrder(settings, order);
        Schedule training = lowered.training();
        Schedule evaluation = lowered.evaluation();
        for (int data = 0; data < grid.data(); data++) {
            for (int part = 0; part < grid.context(); part++) {
                for (int shard = 0; shard < grid.tensor(); shard++) {
                    places.add(new RankPlace(0, shard, part, data));
                }
            }
        }
        for (RankPlace place : places) {
            Device device =
                    Devices.open(DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.REFERENCE));
            var driver =
                    new PipelineDriver(
                            device, settings, training, evaluation, batches, source, place);
            driver.connectRanks(rank -> groups(rank, place, device));
            drivers.add(driver);
            threads.add(Executors.newSingleThreadExecutor());
        }
    }

    private StageGroups groups(int rank, RankPlace own, Device device) {
        return new StageGroups(
                group(GroupRole.TENSOR, rank, own, device, p -> isBeside(p, own)),
                group(
                        GroupRole.CONTEXT,
                        rank,
                        own,
                        device,
                        p -> p.tensor() == own.tensor() && p.data() == own.data()),
                group(GroupRole.REPLICAS, rank, own, device, p -> p.tensor() == own.tensor()));
    }

    private static boolean isBeside(RankPlace place, RankPlace own) {
        return place.context() == own.context() && place.data() == own.data();
    }

    private CollectiveGroup group(
            GroupRole role, int rank, RankPlace own, Device device, Predicate<RankPlace> member) {
        List<RankPlace> members = places.stream().filter(member).toList();
        if (members.size() == 1) {
            return SoloGroup.GROUP;
        }
        OpenGroup group =
                registry.join(
                        1,
                        role,
                        members.stream()
                                .map(p -> places.indexOf(p) + rank * places.size())
                                .toList(),
                        members.indexOf(own),
                        device.kernels(),
                        PATIENCE,
                        UNTOLD);
        groups.add(group);
        return group;
    }

    /** Runs a training step; its loss. */
    double train(long step) throws InterruptedException, ExecutionException {
        List<List<StepResult>> results = all(driver -> driver.compute(step));
        double sum = 0;
        int told = 0;
        for (List<StepResult> ofRank : results) {
            for (StepResult result : ofRank) {
                OptionalDouble loss = result.loss();
                sum += loss.orElse(0);
                told += loss.isPresent() ? 1 : 0;
            }
        }
        gradients = whole();
        all(
                driver -> {
                    driver.update(step, 1);
                    return step;
                });
        return sum / told;
    }

    /** Whole gradients of the last step, of which every element is held by one rank. */
    Map<String, float[]> gradients() {
        return gradients;
    }

    private <T> List<T> all(Function<PipelineDriver, T> work)
            throws InterruptedException, ExecutionException {
        List<Future<T>> futures = new ArrayList<>();
        for (int i = 0; i < drivers.size(); i++) {
            PipelineDriver driver = drivers.get(i);
            Callable<T> call = () -> work.apply(driver);
            futures.add(threads.get(i).submit(call));
        }
        List<T> done = new ArrayList<>();
        for (Future<T> future : futures) {
            done.add(future.get());
        }
        return done;
    }

    private Map<String, float[]> whole() {
        Map<String, float[]> wholes = new TreeMap<>();
        Map<String, Long> covered = new TreeMap<>();
        for (PipelineDriver driver : drivers) {
            for (GptStage stage : driver.stages()) {
                for (NamedTensor t : stage.gradients()) {
                    float[] into =
                            wholes.computeIfAbsent(
                                    t.name(),
                                    _ -> new float[Math.toIntExact(t.piece().wholeElements())]);
                    float[] own = t.tensor().contents().toArray(ValueLayout.JAVA_FLOAT);
                    t.piece().insert(MemorySegment.ofArray(own), MemorySegment.ofArray(into));
                    covered.merge(t.name(), t.piece().elements(), Long::sum);
                }
            }
        }
        wholes.forEach(
                (name, tensor) -> {
                    if (covered.getOrDefault(name, 0L) != tensor.length) {
                        throw new AssertionError(name + ": " + covered.get(name));
                    }
                });
        return wholes;
    }

    @Override
    public void close() {
        threads.forEach(ExecutorService::close);
        groups.forEach(OpenGroup::close);
        drivers.forEach(PipelineDriver::close);
    }
}
