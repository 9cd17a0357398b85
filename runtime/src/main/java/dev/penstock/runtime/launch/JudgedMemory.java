package dev.penstock.runtime.launch;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.config.run.Offload;
import dev.penstock.runtime.config.run.ParallelSection;
import dev.penstock.runtime.config.run.Recompute;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.memory.ActivationChoice;
import dev.penstock.runtime.memory.MemoryProof;
import dev.penstock.runtime.model.shape.OptimizerState;
import dev.penstock.runtime.model.stage.StageBytes;
import dev.penstock.runtime.report.MemoryPlan;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.validate.MemoryLimit;
import dev.penstock.schedules.validate.MemoryModel;
import dev.penstock.schedules.validate.RankBytes;
import dev.penstock.schedules.validate.ScheduleValidator;
import dev.penstock.schedules.validate.Violation;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * The order of a run, judged with the bytes that its ranks will hold. Room for everything is
 * allocated before the first op, as much as the order needs at a time: what comes and goes lies in
 * it, and the rest is there throughout. So where the judge finds no fault, nothing that is live
 * ever exceeds the limit.
 */
record JudgedMemory(LoadedConfig loaded, ProvedSchedule proved, PlannedMemory planned) {

    /** The most that a rank holds, which runs a program that others may run as well. */
    private record Most(int rank, long calm, long bytes) {}

    /**
     * What keeps the order from running in the memory that ranks have, and with their layers.
     *
     * @param chosen what was chosen to fit, for the advice
     */
    List<Problem> problems(Optional<ActivationChoice> chosen) {
        Optional<Long> limit = config().device().memoryLimit().map(Bytes::bytes);
        List<Most> most = limit.isPresent() ? mostOfPrograms() : List.of();
        return ScheduleValidator.validate(
                        proved.training(), proved.conditions().withMemoryLimit(limit(limit, most)))
                .violations()
                .stream()
                .map(violation -> problem(violation, most, chosen))
                .toList();
    }

    private MemoryLimit limit(Optional<Long> limit, List<Most> most) {
        Schedule order = proved.training();
        MemoryModel model = model(new RankPlace(0, 0, 0, 0));
        if (limit.isEmpty()) {
            return MemoryLimit.uniform(model, order.shape().ranks(), Long.MAX_VALUE);
        }
        List<RankBytes> peaks = RankBytes.of(order, PassKind.TRAINING, model);
        List<Long> throughout = new ArrayList<>();
        for (int program = 0; program < most.size(); program++) {
            long comesAndGoes = peaks.get(program).peakBytes();
            throughout.add(Math.max(0, most.get(program).bytes() - comesAndGoes));
        }
        return new MemoryLimit(model, most.stream().map(_ -> limit.get()).toList(), throughout);
    }

    /**
     * What comes and goes, weighed for the ranks at one place of every pipeline rank.
     *
     * @param shard whose pipeline rank does not matter
     */
    MemoryModel model(RankPlace shard) {
        List<StageBytes> stages =
                IntStream.range(0, proved.training().shape().stages())
                        .mapToObj(stage -> planned.stages().bytes(stage, onStage(stage, shard)))
                        .toList();
        List<List<Long>> inputsAreBuffers =
                stages.stream()
                        .map(each -> each.activations().stream().map(_ -> 0L).toList())
                        .toList();
        return new MemoryModel(
                stages.stream().map(StageBytes::activations).toList(),
                inputsAreBuffers,
                stages.stream().map(StageBytes::awaitingWeight).toList(),
                stages.stream().map(StageBytes::gatheredLayers).toList());
    }

    /** A rank that holds a stage, at this place or the last one where it has fewer shards. */
    private RankPlace onStage(int stage, RankPlace shard) {
        int program = proved.training().placement().rankOf(stage);
        int last = config().grid().shardsOf(program) - 1;
        return new RankPlace(
                program, Math.min(shard.tensor(), last), shard.context(), shard.data());
    }

    private List<Most> mostOfPrograms() {
        RankGrid grid = config().grid();
        boolean mayDie = ConfiguredRecovery.replacesDeadProcesses(config());
        List<Long> calm = planned.ofAllRanks().stream().map(MemoryPlan::total).toList();
        List<Most> most = new ArrayList<>();
        for (int rank = 0; rank < calm.size(); rank++) {
            long bytes = mayDie ? planned.afterADeath(rank) : calm.get(rank);
            int program = grid.programOf(rank, proved.training());
            if (program == most.size()) {
                most.add(new Most(rank, calm.get(rank), bytes));
            } else if (bytes > most.get(program).bytes()) {
                most.set(program, new Most(rank, calm.get(rank), bytes));
            }
        }
        return most;
    }

    /** The same as bytes alone. */
    MemoryProof.Held held() {
        boolean mayDie = ConfiguredRecovery.replacesDeadProcesses(config());
        List<MemoryPlan> ranks = planned.ofAllRanks();
        return new MemoryProof.Held(
                ranks,
                IntStream.range(0, ranks.size())
                        .mapToObj(
                                rank ->
                                        mayDie
                                                ? planned.afterADeath(rank)
                                                : ranks.get(rank).total())
                        .toList(),
                model(new RankPlace(0, 0, 0, 0)));
    }

    private Problem problem(
            Violation violation, List<Most> most, Optional<ActivationChoice> chosen) {
        if (violation instanceof Violation.MemoryExceeded exceeded) {
            return loaded.problem(
                    "device.memory-limit",
                    wanted(exceeded, most.get(exceeded.place().rank())),
                    "%,d bytes".formatted(exceeded.limitBytes()),
                    chosen.map(choice -> "of what fit may choose, " + choice.reason() + "; ")
                                    .orElse("")
                            + advice(exceeded, most.get(exceeded.place().rank())));
        }
        return loaded.problem(
                config().schedule().file().isPresent() ? "schedule.file" : "schedule.kind",
                "an order that can run",
                violation.message(),
                "see it with penstock schedule validate");
    }

    private String wanted(Violation.MemoryExceeded exceeded, Most most) {
        List<Integer> stages = proved.training().placement().stagesOf(exceeded.place().rank());
        String of =
                stages.size() == 1
                        ? "rank %d with stage %d".formatted(most.rank(), stages.getFirst())
                        : "rank %d with stages %s".formatted(most.rank(), stages);
        String needed =
                most.bytes() > most.calm()
                        ? "at least %,d bytes for %s, of them %,d for one more mirror after a neighbour's death"
                                .formatted(most.bytes(), of, most.bytes() - most.calm())
                        : "at least %,d bytes for %s".formatted(most.calm(), of);
        return "%s; it holds most at %s (op %d): %s"
                .formatted(
                        needed,
                        OpText.print(exceeded.place().op(), proved.training().shape()),
                        exceeded.place().position(),
                        exceeded.held());
    }

    /** What would make it less, of what there is. */
    private String advice(Violation.MemoryExceeded exceeded, Most most) {
        ParallelSection parallel = config().parallel();
        List<String> ways = new ArrayList<>();
        boolean swapped = config().device().swap().isPresent();
        if (exceeded.peak().activationBytes() > 0
                && config().schedule().recompute() == Recompute.Rule.NONE) {
            ways.add("schedule.recompute = full");
            if (config().schedule().offload() == Offload.Rule.NONE) {
                ways.add("schedule.offload = all");
                ways.add("schedule.activations = fit");
            }
        }
        if (!swapped
                && !config().device().kind().isCuda()
                && config().optimizer().state() == OptimizerState.FLOAT32) {
            ways.add("optimizer.state = int8");
        }
        if (exceeded.peak().gatheredBytes() > 0) {
            ways.add("parallel.zero.residency = layer");
        }
        if (parallel.data() * parallel.context() > 1 && parallel.zeroStage() < 3) {
            ways.add("parallel.zero.stage = " + (parallel.zeroStage() + 1));
        }
        if (parallel.zeroOffload().isEmpty() && !swapped) {
            ways.add(
                    parallel.zeroStage() == 0
                            ? "parallel.zero { stage = 3, offload = FOLDER }"
                            : "parallel.zero.offload = FOLDER");
        }
        if (most.bytes() > most.calm()) {
            ways.add("recovery.mirror = off");
        }
        return "try "
                + String.join(", ", ways)
                + (ways.isEmpty() ? "" : ", ")
                + "more stages, smaller micro-batches or another schedule; penstock memory"
                + " compares them";
    }

    private RunConfig config() {
        return loaded.config();
    }
}
