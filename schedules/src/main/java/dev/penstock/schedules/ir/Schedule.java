package dev.penstock.schedules.ir;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * An order of work for every rank, as data. Generators emit compute ops only; passes of {@code
 * lower} add transfers and reductions; judge, simulator and runtime read the same lowered schedule.
 *
 * <p>The constructor checks only that the parts fit together; whether the order can run is for the
 * judge to say.
 *
 * @param name what a reader calls it, such as {@code 1f1b}; no influence on meaning
 * @param placement of one pipeline, or wired for the peers of the shape
 * @param programs entry r is the program of rank r
 * @param sharedGroups groups of stages that hold the same parameters (tied embeddings) and sum
 *     their gradients with {@link Op.ReduceGradients}; no stage is in two groups
 */
public record Schedule(
        String name,
        PipelineShape shape,
        Placement placement,
        List<RankProgram> programs,
        List<List<Integer>> sharedGroups) {
    private static final Pattern NAME = Pattern.compile("[^\\s#,]+( [^\\s#,]+)*");

    public Schedule {
        programs = List.copyOf(programs);
        sharedGroups = sharedGroups.stream().map(List::copyOf).toList();
        if (!NAME.matcher(name).matches()) {
            throw new IllegalArgumentException(
                    "a schedule's name is words on one line without # and commas, got '%s'"
                            .formatted(name));
        }
        checkPrograms(programs, shape);
        checkPlacement(placement, shape);
        checkWiring(placement.wiring(), shape);
        checkGroups(sharedGroups, shape);
    }

    private static void checkPrograms(List<RankProgram> programs, PipelineShape shape) {
        if (programs.size() != shape.ranks()) {
            throw new IllegalArgumentException(
                    "%d ranks need a program each, got %d programs"
                            .formatted(shape.ranks(), programs.size()));
        }
        for (int rank = 0; rank < programs.size(); rank++) {
            if (programs.get(rank).rank() != rank) {
                throw new IllegalArgumentException(
                        "program %d must be that of rank %d, got rank %d"
                                .formatted(rank, rank, programs.get(rank).rank()));
            }
        }
    }

    private static void checkPlacement(Placement placement, PipelineShape shape) {
        if (placement.stages() != shape.stages()) {
            throw new IllegalArgumentException(
                    "%d ranks of %d chunks have %d stages, but %d are placed"
                            .formatted(
                                    shape.pipelineRanks(),
                                    shape.chunks(),
                                    shape.stages(),
                                    placement.stages()));
        }
        for (int rank : placement.rankOfStage()) {
            if (rank < 0 || rank >= shape.pipelineRanks()) {
                throw new IllegalArgumentException(
                        "stages are placed on ranks 0 to %d, got rank %d"
                                .formatted(shape.pipelineRanks() - 1, rank));
            }
        }
    }

    private static void checkWiring(Optional<Wiring> wiring, PipelineShape shape) {
        int peers = wiring.map(Wiring::peers).orElse(1);
        int ranks = wiring.map(Wiring::pipelineRanks).orElse(shape.pipelineRanks());
        int microBatches = wiring.map(Wiring::microBatches).orElse(shape.microBatches());
        if (peers != shape.peers()
                || ranks != shape.pipelineRanks()
                || microBatches != shape.microBatches()) {
            throw new IllegalArgumentException(
                    "%d peers of %d ranks and %d micro-batches need a wiring of these, got %d, %d and %d"
                            .formatted(
                                    shape.peers(),
                                    shape.pipelineRanks(),
                                    shape.microBatches(),
                                    peers,
                                    ranks,
                                    microBatches));
        }
    }

    private static void checkGroups(List<List<Integer>> groups, PipelineShape shape) {
        Set<Integer> taken = new HashSet<>();
        for (List<Integer> group : groups) {
            boolean known = group.stream().allMatch(s -> s >= 0 && s < shape.stages());
            if (group.size() < 2 || !known || !group.stream().allMatch(taken::add)) {
                throw new IllegalArgumentException(
                        "two or more of the stages 0 to %d share parameters, none in two groups, got %s"
                                .formatted(shape.stages() - 1, groups));
            }
        }
    }

    /** A schedule whose stages share no parameters. */
    public Schedule(
            String name, PipelineShape shape, Placement placement, List<RankProgram> programs) {
        this(name, shape, placement, programs, List.of());
    }

    public RankProgram program(int rank) {
        return programs.get(rank);
    }

    /** The same pipeline with other programs. */
    public Schedule withPrograms(List<RankProgram> otherPrograms) {
        return new Schedule(name, shape, placement, otherPrograms, sharedGroups);
    }

    /**
     * Whether tensors travel by transfer ops. Where no program has one, a tensor reaches the next
     * stage by itself when the op that makes it ends.
     */
    public boolean hasTransfers() {
        return programs.stream()
                .anyMatch(p -> p.ops().stream().anyMatch(op -> op instanceof Op.Transfer));
    }

    /**
     * The lowest stage that has a backward: no gradient is handed to the stages before it. As many
     * as there are stages if none has any.
     */
    public int lowestBackward() {
        return programs.stream()
                .flatMap(program -> program.ops().stream())
                .flatMap(op -> op.computations().stream())
                .filter(op -> op instanceof Op.InputGradient)
                .mapToInt(Op::stage)
                .min()
                .orElse(shape.stages());
    }

    /**
     * Groups of stages whose last {@link Op.ReduceGradients} is one collective of all ranks that
     * hold them: those that share parameters, and in a wired order every other stage with itself,
     * since its peers are ranks of the order. In one pipeline sums with replicas are not seen here.
     */
    public List<List<Integer>> reductionGroups() {
        if (shape.peers() == 1) {
            return sharedGroups;
        }
        var groups = new ArrayList<>(sharedGroups);
        for (int stage = 0; stage < shape.stages(); stage++) {
            int alone = stage;
            if (sharedGroups.stream().noneMatch(group -> group.contains(alone))) {
                groups.add(List.of(stage));
            }
        }
        return groups;
    }

    /** Whether it is computations alone, as a generator makes it. */
    public boolean isComputeOnly() {
        return programs.stream()
                .allMatch(
                        p ->
                                p.ops().stream()
                                        .allMatch(
                                                op ->
                                                        op instanceof Op.Compute
                                                                || op instanceof Op.Overlapped));
    }
}
