package dev.penstock.schedules.plan;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.GatherSettings;
import dev.penstock.schedules.lower.GradientReduction;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.lower.ParameterResidency;
import dev.penstock.schedules.plan.work.HardwareCosts;
import dev.penstock.schedules.plan.work.Layout;
import dev.penstock.schedules.plan.work.LayoutHardware;
import dev.penstock.schedules.plan.work.Layouts;
import dev.penstock.schedules.plan.work.ModelShape;
import dev.penstock.schedules.plan.work.NodeGroup;
import dev.penstock.schedules.plan.work.PipelineWork;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.RankMemory;
import dev.penstock.schedules.plan.work.StagePartitioner;
import dev.penstock.schedules.plan.work.StepTail;
import dev.penstock.schedules.plan.work.ZeroStage;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Timeline;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/** Tries everything, without a bound: every choice is generated, proved and simulated. */
final class BruteForcePlanner {
    private final PlanRequest request;
    private final SearchSpace space;

    BruteForcePlanner(PlanRequest request, SearchSpace space) {
        this.request = request;
        this.space = space;
    }

    /** What it found: the choice and how long its step takes. */
    record Found(PlanChoice choice, List<Integer> partition, long stepNanos, long peakBytes) {}

    /** All choices that fit, unordered. */
    List<Found> all() {
        var found = new ArrayList<Found>();
        int devices = request.cluster().devices();
        for (int pipeline = 1; pipeline <= request.model().layers() + 2; pipeline++) {
            for (int tensor = 1; tensor <= devices; tensor++) {
                for (int data = 1; data <= devices; data++) {
                    if (isPossible(pipeline, tensor, data, devices)) {
                        found.addAll(ofLayout(new Layout(pipeline, tensor, data)));
                    }
                }
            }
        }
        boolean unequal = request.cluster().groups().size() > 1;
        for (int data = 1; data <= devices; data++) {
            if (unequal && request.batch() % data == 0) {
                ofUneven(List.of(), data, found);
            }
        }
        return found;
    }

    /** Every list of shards that begins with these, whose replicas are inside nodes. */
    private void ofUneven(List<Integer> shards, int data, List<Found> found) {
        ModelShape model = request.model();
        boolean ends = !shards.isEmpty() && !shards.getFirst().equals(shards.getLast());
        if (shards.stream().distinct().count() > 1 && !(model.tied() && ends)) {
            found.addAll(ofLayout(Layout.ofShards(shards, data)));
        }
        int used = data * shards.stream().mapToInt(Integer::intValue).sum();
        for (int count = 1;
                shards.size() < model.layers() + 2
                        && used + count * data <= request.cluster().devices();
                count++) {
            int next = count;
            boolean multiples = shards.stream().allMatch(n -> n % next == 0 || next % n == 0);
            boolean inNodes =
                    IntStream.range(0, data)
                            .map(replica -> used + replica * next)
                            .allMatch(first -> isInOneNode(first, first + next));
            if (multiples
                    && inNodes
                    && model.block().keyHeads() % count == 0
                    && model.block().hidden() % count == 0) {
                var longer = new ArrayList<>(shards);
                longer.add(count);
                ofUneven(longer, data, found);
            }
        }
    }

    private boolean isInOneNode(int first, int end) {
        int device = 0;
        for (NodeGroup group : request.cluster().groups()) {
            for (int node = 0; node < group.nodes(); node++) {
                if (first >= device && end <= device + group.devicesPerNode()) {
                    return true;
                }
                device += group.devicesPerNode();
            }
        }
        return false;
    }

    private boolean isPossible(int pipeline, int tensor, int data, int devices) {
        boolean inNode =
                request.cluster().groups().stream()
                        .allMatch(group -> group.devicesPerNode() % tensor == 0);
        return pipeline * tensor * data <= devices
                && request.batch() % data == 0
                && request.model().block().keyHeads() % tensor == 0
                && request.model().block().hidden() % tensor == 0
                && inNode;
    }

    private List<Found> ofLayout(Layout layout) {
        var found = new ArrayList<Found>();
        int sequences = request.batch() / layout.data();
        for (String kind : space.kinds()) {
            for (int microBatches = 1; microBatches <= sequences; microBatches++) {
                for (int chunks : space.chunks()) {
                    for (int slices : space.slices()) {
                        for (ZeroStage zero : space.zeroStages()) {
                            for (boolean recompute : space.recompute()) {
                                if (sequences % microBatches == 0
                                        && (layout.data() > 1 || zero == ZeroStage.NONE)) {
                                    for (var lengths : Layouts.slicings(request.model(), slices)) {
                                        ofChoice(
                                                        new PlanChoice(
                                                                layout,
                                                                zero,
                                                                kind,
                                                                chunks,
                                                                microBatches,
                                                                lengths,
                                                                recompute))
                                                .ifPresent(found::add);
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        return found;
    }

    private Optional<Found> ofChoice(PlanChoice choice) {
        boolean anotherKinds =
                (choice.slices() == 1 && needsSlices(choice.kind()))
                        || (choice.chunks() == 1 && choice.kind().equals("gis"));
        if (anotherKinds || choice.stages() > request.model().layers() + 2) {
            return Optional.empty();
        }
        Schedule schedule;
        try {
            schedule =
                    Generators.generate(
                            choice.kind(),
                            new PipelineShape(
                                    choice.layout().pipeline(),
                                    choice.chunks(),
                                    choice.microBatches(),
                                    choice.sliceLengths()));
        } catch (IllegalArgumentException e) {
            return Optional.empty();
        }
        return partition(choice, schedule, false)
                .flatMap(partition -> ofPartition(choice, schedule, partition))
                .or(
                        () ->
                                choice.chunks() > 1
                                        ? Optional.empty()
                                        : partition(choice, schedule, true)
                                                .flatMap(p -> ofPartition(choice, schedule, p)));
    }

    /** With one slice, these are the order of another kind. */
    private static boolean needsSlices(String kind) {
        return kind.startsWith("seq1f1b") || kind.startsWith("terapipe");
    }

    private PipelineWork work(PlanChoice choice) {
        return PipelineWork.of(
                request,
                LayoutHardware.of(request.cluster(), choice.layout()),
                request.batch() / choice.layout().data() / choice.microBatches(),
                choice.sliceLengths(),
                choice.recompute());
    }

    private Optional<List<Integer>> partition(
            PlanChoice choice, Schedule schedule, boolean underMemory) {
        PipelineWork work = work(choice);
        int last = choice.stages() - 1;
        List<Integer> peaks =
                MemoryProfile.of(schedule, PassKind.TRAINING).ranks().stream()
                        .map(MemoryProfile.RankPeak::peakUnits)
                        .toList();
        return StagePartitioner.partition(
                request.model().layers(),
                choice.stages(),
                new StagePartitioner.StageLoad() {
                    @Override
                    public long nanos(int stage, int blocks) {
                        int rank = schedule.placement().rankOf(stage);
                        return work.stageNanos(rank, blocks, stage == 0, stage == last);
                    }

                    @Override
                    public boolean fits(int stage, int blocks) {
                        if (!underMemory) {
                            return true;
                        }
                        boolean first = stage == 0;
                        boolean isLast = stage == last;
                        long unit =
                                IntStream.range(0, choice.slices())
                                        .mapToLong(s -> work.keptBytes(stage, s, blocks, isLast))
                                        .min()
                                        .orElseThrow();
                        return RankMemory.state(work, choice.zero(), stage, blocks, first, isLast)
                                        + RankMemory.working(
                                                work, choice.zero(), stage, blocks, first, isLast)
                                        + peaks.get(stage) * unit
                                <= work.ranks().get(stage).hardware().memoryBytes();
                    }
                });
    }

    /** What a run adds; reductions of replicas take their time at their place in the order. */
    private static LoweringOptions added(PlanChoice choice) {
        LoweringOptions options = LoweringOptions.plain();
        if (choice.recompute()) {
            options = options.withRecompute();
        }
        if (choice.zero() == ZeroStage.PARAMETERS) {
            options = options.withGathers(new GatherSettings(ParameterResidency.PER_OP, 1));
        }
        boolean everyMicroBatch = choice.zero().number() >= 2;
        return choice.layout().data() == 1
                ? options
                : options.withReduction(
                        everyMicroBatch
                                ? GradientReduction.PER_MICRO_BATCH
                                : GradientReduction.PER_STEP);
    }

    private Optional<Found> ofPartition(
            PlanChoice choice, Schedule schedule, List<Integer> partition) {
        PipelineWork work = work(choice);
        var cut = new Cut(work, choice.microBatches(), schedule.placement(), partition);
        long peak = 0;
        for (RankProgram program : schedule.programs()) {
            var memory =
                    RankMemory.of(
                            work,
                            partition,
                            schedule.placement(),
                            choice.zero(),
                            program.rank(),
                            ActivationWalk.peak(program, cut::keptBytes));
            if (memory.excess() > 0) {
                return Optional.empty();
            }
            peak = Math.max(peak, memory.bytes());
        }
        Schedule lowered = Lowering.lower(schedule, added(choice));
        InFlight inFlight = InFlight.auto(lowered);
        ScheduleValidator.validate(lowered, Conditions.training().with(inFlight)).orThrow();
        Timeline timeline =
                ScheduleSimulator.simulate(
                        lowered,
                        HardwareCosts.of(request, choice, partition, schedule.placement()),
                        inFlight);
        long[] tails = StepTail.nanos(work, partition, schedule.placement(), choice.zero());
        long step = 0;
        for (int rank = 0; rank < tails.length; rank++) {
            long end = 0;
            for (int op = 0; op < timeline.opsRun(rank); op++) {
                end = Math.max(end, timeline.endNanos(rank, op));
            }
            step = Math.max(step, end + tails[rank]);
        }
        return Optional.of(new Found(choice, partition, step, peak));
    }
}
