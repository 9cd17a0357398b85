package dev.penstock.runtime.model.parameters;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.SoloGroup;
import java.util.ArrayList;
import java.util.List;

/** The sum of a stage's gradients with those of its replicas, all groups at once. */
public final class GradientReducer implements Collective {
    /** Gradients that are summed together. */
    public interface Group {
        /** Begins the sum. */
        Collective reduce(CollectiveGroup replicas);

        /** Called when the sum has arrived. */
        void reduced();
    }

    private record UnderWay(Group group, Collective sum) {}

    private final List<UnderWay> underWay = new ArrayList<>();

    private GradientReducer(List<? extends Group> groups, CollectiveGroup replicas) {
        for (Group group : groups) {
            underWay.add(new UnderWay(group, group.reduce(replicas)));
        }
    }

    /**
     * Begins the sum; the gradients of a stage without replicas already are the sum.
     *
     * @param kept whether sums are kept elsewhere than where they accumulate
     */
    public static Collective reduce(
            List<? extends Group> groups, CollectiveGroup replicas, boolean kept) {
        if (replicas.size() > 1) {
            return new GradientReducer(groups, replicas);
        }
        if (kept) {
            groups.forEach(GradientReducer.Group::reduced);
        }
        return SoloGroup.DONE;
    }

    @Override
    public boolean advance() {
        underWay.removeIf(
                each -> {
                    boolean done = each.sum().advance();
                    if (done) {
                        each.group().reduced();
                    }
                    return done;
                });
        return underWay.isEmpty();
    }

    @Override
    public String describe() {
        return underWay.isEmpty() ? "nothing" : underWay.getFirst().sum().describe();
    }
}
