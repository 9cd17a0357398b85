package dev.penstock.schedules.plan;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Optional;

/**
 * In which order plans are listed, and how many of a kind.
 *
 * <p>The fastest plan and all that are at most {@code near} slower form a band; the fastest of the
 * rest begins the next one. Within a band the plan that needs less memory comes first, then the
 * simpler one: predictions are not as exact as their digits.
 *
 * @param near share of the time by which plans of a band differ at most; 0: only equals
 * @param ofAFamily most plans with the same kind of schedule and the same number of stages
 */
public record Ranking(double near, int ofAFamily) {
    /** Fastest first, all of them. */
    public static final Ranking BY_TIME = new Ranking(0, Integer.MAX_VALUE);

    /** Those within 2 % are near, and two of a family are enough. */
    public static final Ranking FOR_PEOPLE = new Ranking(0.02, 2);

    public Ranking {
        if (!(near >= 0 && near < 1) || ofAFamily < 1) {
            throw new IllegalArgumentException(
                    "a ranking needs a share from 0 to 1 and 1 plan of a family or more, got %s and %d"
                            .formatted(near, ofAFamily));
        }
    }

    /** The same with all plans of a family. */
    public Ranking withAll() {
        return new Ranking(near, Integer.MAX_VALUE);
    }

    private record Family(String kind, int stages) {
        static Family of(Plan plan) {
            return new Family(plan.choice().kind(), plan.choice().stages());
        }
    }

    /** The first {@code most} plans in this order. */
    List<Plan> first(NavigableSet<Plan> fastestFirst, int most) {
        List<Plan> listed = new ArrayList<>();
        Map<Family, Integer> taken = new HashMap<>();
        List<Plan> band = new ArrayList<>();
        long end = -1;
        for (Plan plan : fastestFirst) {
            if (plan.stepNanos() > end) {
                take(band, taken, listed, most);
                band.clear();
                end = nearTo(plan.stepNanos());
            }
            if (listed.size() == most) {
                return listed;
            }
            band.add(plan);
        }
        take(band, taken, listed, most);
        return listed;
    }

    private void take(List<Plan> band, Map<Family, Integer> taken, List<Plan> listed, int most) {
        band.sort(Plan.LEANEST_FIRST);
        for (Plan plan : band) {
            if (listed.size() < most
                    && taken.merge(Family.of(plan), 1, Integer::sum) <= ofAFamily) {
                listed.add(plan);
            }
        }
    }

    /**
     * The time above which no plan is among the first {@code most}, whatever else is found: as many
     * are in bands that begin no later than the plan with which there are enough.
     *
     * @return empty while there are too few
     */
    Optional<Long> slowest(NavigableSet<Plan> fastestFirst, int most) {
        Map<Family, Integer> taken = new HashMap<>();
        int count = 0;
        for (Plan plan : fastestFirst) {
            if (taken.merge(Family.of(plan), 1, Integer::sum) <= ofAFamily && ++count == most) {
                return Optional.of(nearTo(plan.stepNanos()));
            }
        }
        return Optional.empty();
    }

    private long nearTo(long nanos) {
        return nanos + (long) (nanos * near);
    }
}
