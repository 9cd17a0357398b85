package dev.penstock.schedules.lower;

import dev.penstock.schedules.ir.Op;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** From which computation to which a rank has a stage's parameters. */
final class ParameterStays {
    /**
     * One stay. Computations of a rank are counted from 0, all other ops left out.
     *
     * @param first the computation that needs the parameters first
     * @param last the last that does
     */
    record Stay(int stage, int first, int last) {}

    private final ParameterResidency residency;
    private final List<Stay> stays = new ArrayList<>();

    /** By stage: the stay that may still be prolonged. */
    private final Map<Integer, Stay> open = new TreeMap<>();

    private final List<Op> computations;

    /**
     * @param computations ops of one rank that compute, in their order
     */
    ParameterStays(List<Op> computations, ParameterResidency residency) {
        this.computations = computations;
        this.residency = residency;
        for (int i = 0; i < computations.size(); i++) {
            for (int stage : stages(computations.get(i))) {
                use(stage, i);
            }
        }
        stays.addAll(open.values());
    }

    /** In no particular order. */
    List<Stay> stays() {
        return stays;
    }

    private void use(int stage, int at) {
        Stay stay = open.get(stage);
        if (stay != null && lasts(stay, at)) {
            open.put(stage, new Stay(stage, stay.first(), at));
            return;
        }
        if (stay != null) {
            stays.add(stay);
        }
        open.put(stage, new Stay(stage, at, at));
    }

    private boolean lasts(Stay stay, int next) {
        return switch (residency) {
            case PER_OP -> false;
            case PER_MICRO_BATCH ->
                    microBatches(stay.stage(), stay.last()).stream()
                            .anyMatch(microBatches(stay.stage(), next)::contains);
            case PER_PASS -> stay.last() == next - 1;
            case PER_STEP -> true;
        };
    }

    private static Set<Integer> stages(Op op) {
        return op.computations().stream().map(Op::stage).collect(Collectors.toSet());
    }

    private Set<Integer> microBatches(int stage, int at) {
        return computations.get(at).computations().stream()
                .filter(part -> part.stage() == stage)
                .map(part -> part.unit().microBatch())
                .collect(Collectors.toSet());
    }
}
