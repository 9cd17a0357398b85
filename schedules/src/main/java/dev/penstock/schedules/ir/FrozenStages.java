package dev.penstock.schedules.ir;

import java.util.Set;
import java.util.TreeSet;

/**
 * The stages of a pipeline of which nothing is trained. Their backwards are those for the input
 * alone; those before the first trained one have no backward at all, and nobody sends them a
 * gradient.
 *
 * <pre>
 *   stage            0       1        2       3
 *                 frozen  trained  frozen  trained
 *   for the input   no      yes      yes     yes
 *   for weights     no      yes      no      yes
 * </pre>
 */
public record FrozenStages(Set<Integer> stages) {
    /** Every stage trains something. */
    public static final FrozenStages NONE = new FrozenStages(Set.of());

    public FrozenStages {
        stages = Set.copyOf(stages);
    }

    /** Whether backwards of a stage add to gradients of its weights. */
    public boolean trains(int stage) {
        return !stages.contains(stage);
    }

    /** Whether a stage has backwards for its input. */
    public boolean hasBackward(int stage) {
        return stage >= leading();
    }

    /** How many stages stand before the first trained one. */
    public int leading() {
        int leading = 0;
        while (stages.contains(leading)) {
            leading++;
        }
        return leading;
    }

    @Override
    public String toString() {
        return new TreeSet<>(stages).toString();
    }
}
