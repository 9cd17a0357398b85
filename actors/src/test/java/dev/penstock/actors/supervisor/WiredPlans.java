package dev.penstock.actors.supervisor;

import dev.penstock.actors.dataplane.ChannelCodecs;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.spi.DegradedPlans;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;
import dev.penstock.actors.spi.Timeouts;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.wired.WiredOrder;
import dev.penstock.schedules.generate.wired.WiredOrder.Backwards;
import dev.penstock.schedules.generate.wired.Wirings;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.GradientReduction;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeSet;

/**
 * Plans of one run of wired replicas, each the one that a revision says: straight, or balanced for
 * speeds that are drawn, but for the ranks that its settings name, in their order.
 *
 * @param capacities of the channels of every plan
 */
public record WiredPlans(
        int stages,
        int peers,
        int microBatches,
        Backwards backwards,
        RunSteps steps,
        long ringFromBytes,
        Map<ChannelKey, Integer> capacities)
        implements DegradedPlans {
    private static final String SPEEDS = "speeds=";

    /** The plan that a revision says. */
    public RunPlan of(PlanRevision revision) {
        PipelineShape shape = PipelineShape.of(stages, microBatches).withPeers(peers);
        OptionalLong seed = seed(revision);
        Wirings wirings =
                seed.isEmpty()
                        ? Wirings.equal(shape)
                        : Wirings.equal(shape).withNanos(speeds(seed.getAsLong(), shape.ranks()));
        Placement placement = seed.isEmpty() ? wirings.straight() : wirings.balanced();
        for (int rank : absent(revision)) {
            placement = wirings.without(placement, rank);
        }
        Schedule compute =
                WiredOrder.schedule(
                        shape,
                        placement,
                        backwards,
                        Collections.nCopies(shape.ranks(), OpCosts.unit()),
                        WiredOrder.usualCaps(shape));
        LoweringOptions options = LoweringOptions.plain().withReduction(GradientReduction.PER_STEP);
        return new RunPlan(
                "wired",
                "hash",
                Lowering.lower(compute, options),
                Lowering.lowerForwardOnly(compute, options),
                new RankGrid(stages, 1, 1, peers),
                capacities,
                steps,
                Timeouts.DEFAULT,
                false,
                true,
                ringFromBytes,
                ChannelCodecs.NONE,
                RunPlan.NEVER,
                revision,
                "the stages of all");
    }

    private static OptionalLong seed(PlanRevision revision) {
        return revision.settings().stream()
                .filter(setting -> setting.startsWith(SPEEDS))
                .mapToLong(setting -> Long.parseLong(setting.substring(SPEEDS.length())))
                .findFirst();
    }

    private static List<Long> speeds(long seed, int ranks) {
        return new SplittableRandom(seed).longs(ranks, 1, 5).boxed().toList();
    }

    /** The ranks that a revision names. */
    public static List<Integer> absent(PlanRevision revision) {
        return revision.settings().stream()
                .filter(setting -> !setting.startsWith(SPEEDS))
                .map(Integer::valueOf)
                .toList();
    }

    /** The next plan after this one, for other speeds. */
    public RunPlan balanced(PlanRevision now, long seed) {
        List<String> settings = new ArrayList<>(now.settings());
        settings.removeIf(setting -> setting.startsWith(SPEEDS));
        settings.add(SPEEDS + seed);
        int number = now.number() + 1;
        return of(new PlanRevision(number, settings, "hash-" + number, "speeds have changed"));
    }

    /** The plan of a run that begins. */
    public RunPlan first() {
        return of(PlanRevision.NONE);
    }

    @Override
    public Optional<RunPlan> without(PlanRevision now, Set<Integer> absent) {
        List<String> settings = new ArrayList<>(now.settings());
        absent(now).stream()
                .filter(rank -> !absent.contains(rank))
                .forEach(rank -> settings.remove(String.valueOf(rank)));
        new TreeSet<>(absent)
                .stream()
                        .map(String::valueOf)
                        .filter(rank -> !settings.contains(rank))
                        .forEach(settings::add);
        int number = now.number() + 1;
        try {
            return Optional.of(
                    of(
                            new PlanRevision(
                                    number, settings, "hash-" + number, absent + " are absent")));
        } catch (IllegalArgumentException e) {
            return Optional.empty(); // nobody else holds the stage
        }
    }
}
