package dev.penstock.runtime.chaos;

import dev.penstock.runtime.launch.AuditTrail;
import dev.penstock.runtime.launch.AuditTrail.Applied;
import dev.penstock.runtime.launch.AuditTrail.Entry;
import dev.penstock.runtime.launch.AuditTrail.Holder;
import dev.penstock.runtime.launch.AuditTrail.Summed;
import dev.penstock.runtime.model.shape.OuterSettings;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The second invariant: each (step, micro-batch, slice) gradient is applied exactly once.
 *
 * <p>The proof uses the stages' books, of every rank that holds one: replicas have the same units
 * by number, but of different sequences. In an uninterrupted run the states form a chain: the state
 * after step s is the state before step s+1. Every sum of a step, in either run, has each unit
 * exactly once. Every update of the run under faults, including those of repeated steps, leads from
 * the state that the uninterrupted run had before that step to the one it had after it: so nothing
 * was left out, and nothing was applied twice, for either would give another state. A step whose
 * update is not in the book (a mirror applied it for a rank that died) is proved by the next one,
 * which found its state; the last step's update has to be there.
 *
 * <p>Where replicas take steps alone, the chain has a gap behind steps whose exchange is applied:
 * only there may a state be another than that after the step before. A mean that is left out or
 * applied twice gives another state, too.
 *
 * <p>Where replicas share micro-batches, a sum has each unit at most once, and of the ranks that
 * hold a stage one at least has summed and applied every step: others may have been absent.
 */
final class AppliedOnce {
    private final PipelineShape shape;
    private final long steps;
    private final List<Holder> holders;
    private final Optional<OuterSettings> outer;
    private final List<String> violations = new ArrayList<>();

    /** By the number of a stage, where replicas share micro-batches; else by rank. */
    private final Map<Object, Proof> proofs = new LinkedHashMap<>();

    /** The steps that were summed, and those that were applied. */
    private record Proof(Holder holder, Set<Long> summed, Set<Long> found) {}

    /**
     * @param holders of all stages, each of which keeps a book
     * @param outer how replicas that take steps alone are brought together
     */
    AppliedOnce(
            PipelineShape shape, long steps, List<Holder> holders, Optional<OuterSettings> outer) {
        this.shape = shape;
        this.steps = steps;
        this.holders = List.copyOf(holders);
        this.outer = outer;
    }

    /** Returns the steps of each run. */
    long steps() {
        return steps;
    }

    /**
     * Returns the violations of the invariant; empty if it holds. To be called once.
     *
     * @param reference books of the uninterrupted run
     * @param harmed books of the run under faults
     */
    List<String> violations(AuditTrail reference, AuditTrail harmed) {
        holders.forEach(holder -> holder(holder, reference.of(holder), harmed.of(holder)));
        proofs.values().forEach(this::everyStep);
        return violations;
    }

    private void holder(Holder holder, List<Entry> reference, List<Entry> harmed) {
        Map<Long, Applied> truth = chain(holder, reference);
        reference.forEach(entry -> sum(holder, entry));
        harmed.forEach(entry -> sum(holder, entry));
        Proof proof =
                proofs.computeIfAbsent(
                        areShared() ? holder.stage() : holder,
                        _ -> new Proof(holder, new HashSet<>(), new HashSet<>()));
        for (Entry entry : harmed) {
            switch (entry) {
                case Summed sum -> proof.summed.add(sum.step());
                case Applied applied -> {
                    if (!applied.equals(truth.get(applied.step()))) {
                        wrong(
                                holder,
                                applied.step(),
                                "an update led from state %08x to %08x; without faults it was %s"
                                        .formatted(
                                                applied.before(),
                                                applied.after(),
                                                said(truth.get(applied.step()))));
                    }
                    proof.found.add(applied.step());
                }
            }
        }
    }

    private boolean areShared() {
        return shape.peers() > 1;
    }

    private void everyStep(Proof proof) {
        for (long step = 1; step <= steps; step++) {
            if (!proof.summed.contains(step)) {
                wrong(proof.holder, step, "its gradients were never complete");
            }
            if (!proof.found.contains(step) && !proof.found.contains(step + 1)) {
                wrong(proof.holder, step, "there is no proof that it was applied");
            }
        }
    }

    /**
     * Returns the updates of the uninterrupted run, each of which must start from the state after
     * the previous one, or from what an exchange made of it.
     */
    private Map<Long, Applied> chain(Holder holder, List<Entry> reference) {
        Map<Long, Applied> chain = new HashMap<>();
        for (Entry entry : reference) {
            if (entry instanceof Applied applied) {
                Applied before = chain.get(applied.step() - 1);
                boolean first = applied.step() == 1;
                boolean follows =
                        before != null
                                && (before.after() == applied.before()
                                        || appliesBehind(before.step()));
                if (!(first || follows) || chain.put(applied.step(), applied) != null) {
                    wrong(
                            holder,
                            applied.step(),
                            "the chain of states is broken in the run without faults");
                }
            }
        }
        return chain;
    }

    private boolean appliesBehind(long step) {
        return outer.map(each -> each.appliesBehind(step)).orElse(false);
    }

    private void sum(Holder holder, Entry entry) {
        if (!(entry instanceof Summed(long step, List<WorkUnit> units))) {
            return;
        }
        Map<WorkUnit, Integer> counts = new HashMap<>();
        units.forEach(unit -> counts.merge(unit, 1, Integer::sum));
        for (int microBatch = 0; microBatch < shape.microBatches(); microBatch++) {
            for (int slice = 0; slice < shape.slices(); slice++) {
                int count = counts.getOrDefault(new WorkUnit(holder.stage(), microBatch, slice), 0);
                if (count > 1 || (count == 0 && !areShared())) {
                    wrong(
                            holder,
                            step,
                            "the gradient of micro-batch %d, slice %d is in the sum %d times"
                                    .formatted(microBatch, slice, count));
                }
            }
        }
    }

    private static String said(@Nullable Applied truth) {
        return truth == null
                ? "not applied at all"
                : "from %08x to %08x".formatted(truth.before(), truth.after());
    }

    private void wrong(Holder holder, long step, String what) {
        violations.add("%s, step %d: %s".formatted(holder, step, what));
    }
}
