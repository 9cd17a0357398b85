package dev.penstock.runtime.adapt;

import dev.penstock.actors.spi.DegradedPlans;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.Wiring;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.UnitCosts;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Orders of a run in which ranks are absent, and what a step takes in them: as the simulator says
 * when the order is made, and as it is measured later. It is asked for orders on any thread, and
 * told of the run on the listener's.
 */
public final class DegradedOrders implements DegradedPlans, RunListener {
    private static final String WITHOUT = "schedule.without=";
    private static final String COSTS = "schedule.costs=";

    /** After a change: links are new, and the ranks' first step in them is slow. */
    private static final int SETTLING = 1;

    /** Steps whose median is told. */
    private static final int ENOUGH = 5;

    private final RunPlan first;
    private final Adaptation.Reviser reviser;
    private RunListener told = new RunListener() {};
    private List<Integer> absent;

    /** What a step takes while all are there; empty as long as that is not known. */
    private final List<Long> whole = new ArrayList<>();

    private final List<Long> measured = new ArrayList<>();
    private int settling = SETTLING;

    /**
     * @param first plan of the run, whose absent ranks no plan has
     */
    public DegradedOrders(RunPlan first, Adaptation.Reviser reviser) {
        this.first = first;
        this.reviser = reviser;
        this.absent = first.absent();
    }

    @Override
    public Optional<RunPlan> without(PlanRevision now, Set<Integer> lost) {
        List<Integer> order = inOrderOfLoss(now, lost);
        List<String> settings = new ArrayList<>(now.settings());
        settings.removeIf(setting -> setting.startsWith(WITHOUT));
        if (!order.equals(first.absent())) {
            settings.add(WITHOUT + order);
        }
        return reviser.revise(now.number() + 1, settings, "")
                .filter(Adaptation.Revised::fits)
                .map(Adaptation.Revised::plan)
                .map(plan -> plan.as(saying(words(plan), plan.revision()), plan.hash()));
    }

    /** The same plan with all ranks there. */
    private Schedule usual(PlanRevision of) {
        List<String> settings = new ArrayList<>(of.settings());
        settings.removeIf(setting -> setting.startsWith(WITHOUT));
        return settings.isEmpty()
                ? first.training()
                : reviser.revise(of.number(), settings, "")
                        .map(whole -> whole.plan().training())
                        .orElseGet(first::training);
    }

    private static PlanRevision saying(String reason, PlanRevision of) {
        return new PlanRevision(of.number(), of.settings(), of.hash(), reason);
    }

    private List<Integer> inOrderOfLoss(PlanRevision now, Set<Integer> lost) {
        Set<Integer> all = new TreeSet<>(lost);
        all.addAll(first.absent());
        List<Integer> order =
                numbers(now.settings(), WITHOUT).orElse(List.of()).stream()
                        .filter(all::contains)
                        .collect(Collectors.toCollection(ArrayList::new));
        all.stream().filter(rank -> !order.contains(rank)).forEach(order::add);
        return order;
    }

    private String words(RunPlan plan) {
        if (plan.absent().equals(first.absent())) {
            return "all ranks are there again";
        }
        return "%s; a step takes %.2f times as long in the simulator"
                .formatted(
                        names(plan.absent()),
                        (double) simulated(plan.training(), plan.revision())
                                / simulated(usual(plan.revision()), plan.revision()));
    }

    private static String names(List<Integer> absent) {
        return "%s absent, others do %s work"
                .formatted(
                        absent.size() == 1
                                ? "rank %d is".formatted(absent.getFirst())
                                : "ranks %s are"
                                        .formatted(
                                                absent.stream()
                                                        .map(String::valueOf)
                                                        .collect(Collectors.joining(", "))),
                        absent.size() == 1 ? "its" : "their");
    }

    /** With the costs that a plan's order was made for. */
    private long simulated(Schedule order, PlanRevision plan) {
        List<Integer> costs =
                numbers(plan.settings(), COSTS)
                        .orElseGet(() -> reviser.model(first.revision()).order().costs());
        CostModel model =
                costs.isEmpty()
                        ? UnitCosts.defaults()
                        : CostModel.ofRanks(
                                IntStream.range(0, costs.size() / 3)
                                        .mapToObj(rank -> costs.subList(3 * rank, 3 * rank + 3))
                                        .map(
                                                of ->
                                                        CostModel.split(
                                                                of.get(0), of.get(1), of.get(2), 0))
                                        .toList());
        return ScheduleSimulator.simulate(order, model, InFlight.auto(order)).makespanNanos();
    }

    /** A list among settings; empty if there is no such setting. */
    private static Optional<List<Integer>> numbers(List<String> settings, String key) {
        return settings.stream()
                .filter(setting -> setting.startsWith(key))
                .map(setting -> setting.substring(key.length()).replaceAll("[^0-9]+", " ").strip())
                .map(
                        numbers ->
                                numbers.isEmpty()
                                        ? List.<Integer>of()
                                        : Stream.of(numbers.split(" "))
                                                .map(Integer::valueOf)
                                                .toList())
                .findFirst();
    }

    // ---- what steps take ------------------------------------------------------------------------

    /**
     * Begins to watch a run, which another process may have led before.
     *
     * @param listener hears what steps take without ranks
     */
    public void begin(RunListener listener, RunPlan plan) {
        told = listener;
        absent = plan.absent();
    }

    @Override
    public void onRevised(PlanRevision revision, Schedule training, long completed) {
        List<Integer> before = absent;
        absent = training.placement().wiring().map(Wiring::absent).orElse(List.of());
        measured.clear();
        if (absent.equals(before)) {
            whole.clear(); // others do what they did then
        }
    }

    @Override
    public void onRecovery(RecoveryReport report) {
        measured.clear();
        settling = SETTLING;
    }

    @Override
    public void onStep(StepReport report) {
        if (settling > 0) {
            settling--;
            return;
        }
        long nanos = report.endNanos() - report.startNanos();
        if (absent.equals(first.absent())) {
            whole.add(nanos);
            if (whole.size() > ENOUGH) {
                whole.removeFirst();
            }
            return;
        }
        measured.add(nanos);
        if (measured.size() == ENOUGH && !whole.isEmpty()) {
            double now = median(measured);
            told.onPlanNote(
                    String.format(
                            Locale.ROOT,
                            "%s: a step takes %.3f s, which is %.2f times as long as with all ranks",
                            names(absent),
                            now / 1e9,
                            now / median(whole)));
        }
    }

    private static double median(List<Long> nanos) {
        List<Long> sorted = new ArrayList<>(nanos);
        Collections.sort(sorted);
        return IntStream.of((sorted.size() - 1) / 2, sorted.size() / 2)
                .mapToLong(sorted::get)
                .average()
                .orElseThrow();
    }
}
