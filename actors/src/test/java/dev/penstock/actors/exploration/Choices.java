package dev.penstock.actors.exploration;

import java.util.ArrayList;
import java.util.List;

/** What may happen next in a world. */
final class Choices {
    private final ModelWorld world;
    private final List<Choice> choices = new ArrayList<>();

    private Choices(ModelWorld world) {
        this.world = world;
    }

    /** All that may happen. */
    static List<Choice> all(ModelWorld world) {
        var all = new Choices(world);
        all.addSteps();
        all.addFaults();
        return all.choices;
    }

    /** What may go wrong. */
    static List<Choice> mishaps(ModelWorld world) {
        var mishaps = new Choices(world);
        mishaps.addFaults();
        return mishaps.choices;
    }

    /** What may happen if nothing goes wrong. */
    static List<Choice> steps(ModelWorld world) {
        var steps = new Choices(world);
        steps.addSteps();
        return steps.choices;
    }

    private void addSteps() {
        for (ModelProcess process : world.processes) {
            int before = choices.size();
            addOfProcess(process);
            if (world.faults().areOver() && choices.size() > before && isAlone(process)) {
                choices.subList(0, before).clear();
                return;
            }
        }
        for (int s = 0; s < world.supervisors.size(); s++) {
            if (world.supervisors.get(s).lives()) {
                addOfSupervisor(s);
            }
        }
        for (int i = 0; i < world.toStart.size(); i++) {
            int start = i;
            choices.add(
                    new Choice(
                            then -> then.start(start),
                            "a process for rank %d starts",
                            world.toStart.get(i)));
        }
        if (choices.isEmpty()) {
            choices.add(new Choice(ModelWorld::timePasses, "time passes"));
        }
    }

    /**
     * Whether what it does next concerns nobody else, nor does anybody else change it: then it may
     * as well do it first.
     */
    private boolean isAlone(ModelProcess process) {
        ModelRank rank = process.rank();
        boolean mayYetFinish = rank != null && rank.trains() && !rank.mayFinish(world);
        long active =
                world.supervisors.stream()
                        .filter(each -> each.lives() && !each.isInert(world))
                        .count();
        return !mayYetFinish
                && active <= 1
                && process.orders.stream().filter(orders -> !orders.isEmpty()).count() <= 1;
    }

    private void addOfProcess(ModelProcess process) {
        if (!process.lives()) {
            return;
        }
        int p = process.number;
        for (int s = 0; s < world.supervisors.size(); s++) {
            List<Order> orders = process.orders.get(s);
            if (!orders.isEmpty()) {
                int from = s;
                choices.add(
                        new Choice(
                                then -> then.processes.get(p).takeOrder(then, from),
                                "process %d takes %s of %s",
                                p,
                                orders.getFirst(),
                                ModelWorld.name(s)));
            }
        }
        ModelRank rank = process.rank();
        if (rank != null && rank.mayFinish(world)) {
            choices.add(
                    new Choice(
                            then -> then.processes.get(p).finishesPass(then),
                            "rank %d ends its pass",
                            rank.rank));
        }
    }

    private void addOfSupervisor(int s) {
        ModelSupervisor supervisor = world.supervisors.get(s);
        for (ModelProcess process : world.processes) {
            int from = process.number;
            List<Word> words = process.words.get(s);
            if (!words.isEmpty()) {
                choices.add(
                        new Choice(
                                then ->
                                        then.supervisors
                                                .get(s)
                                                .takeWord(then, then.processes.get(from)),
                                "%s hears %s of process %d",
                                ModelWorld.name(s),
                                words.getFirst(),
                                from));
            }
        }
        for (int i = 0; i < supervisor.deaths.size(); i++) {
            int which = i;
            choices.add(
                    new Choice(
                            then -> then.supervisors.get(s).hearDeath(then, which),
                            "%s hears that process %d died",
                            ModelWorld.name(s),
                            supervisor.deaths.get(i)));
        }
        if (!supervisor.published.isEmpty()) {
            choices.add(
                    new Choice(
                            then -> then.supervisors.get(s).hearPublished(then),
                            "%s hears that a checkpoint is whole",
                            ModelWorld.name(s)));
        }
    }

    // ---- what may go wrong ----------------------------------------------------------------------

    private void addFaults() {
        Faults faults = world.faults();
        for (ModelProcess process : world.processes) {
            for (int s = 0; s < world.supervisors.size() && faults.losses() > 0; s++) {
                addLosses(process, s);
            }
            int p = process.number;
            if (faults.deaths() > 0 && world.hasTrained() && process.lives()) {
                choices.add(new Choice(then -> then.isKilled(p), "process %d dies", p));
            }
        }
        for (int lost = 0; faults.takeOvers() > 0 && lost <= faults.lostRecords(); lost++) {
            int records = lost;
            if (world.files.run(lost).filter(run -> run.ending().isEmpty()).isPresent()) {
                choices.add(
                        new Choice(
                                then -> then.takeUp(records),
                                "B takes the run up, of whose journal %d records are lost",
                                lost));
            }
        }
    }

    private void addLosses(ModelProcess process, int s) {
        int p = process.number;
        List<Order> orders = process.orders.get(s);
        List<Word> words = process.words.get(s);
        if (process.lives() && !orders.isEmpty()) {
            choices.add(
                    new Choice(
                            then -> then.loses(then.processes.get(p).orders.get(s)),
                            "%s to process %d is lost",
                            orders.getFirst(),
                            p));
        }
        if (world.supervisors.get(s).lives() && !words.isEmpty()) {
            choices.add(
                    new Choice(
                            then -> then.loses(then.processes.get(p).words.get(s)),
                            "%s of process %d is lost",
                            words.getFirst(),
                            p));
        }
    }
}
